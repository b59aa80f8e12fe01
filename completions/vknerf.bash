# bash completion of vknerf: the program itself says what may come next, so that both are of one version.
# shellcheck shell=bash

_vknerf() {
    local line=${COMP_LINE:0:COMP_POINT} rest word reply at
    local -a words=()
    # bash cuts words at = and : as well; what no blank divides is one word here. What stands behind the
    # cursor is left out.
    for ((at = 0; at <= COMP_CWORD; at++)); do
        rest=${line#"${line%%[![:blank:]]*}"}
        word=${COMP_WORDS[at]}
        ((at < COMP_CWORD)) || word=$rest
        if [[ $at -gt 0 && $rest == "$line" ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        line=${rest#"$word"}
    done
    words=("${words[@]//\\/}")
    word=${words[${#words[@]}-1]}
    local program=${words[0]/#\~/$HOME}
    local kept=${word%"${word##*[=:]}"} # of the word, by bash
    COMPREPLY=()
    while IFS= read -r reply; do
        case $reply in
            ':files '*) compopt -o default ;;
            ':directories '*) compopt -o dirnames ;;
            *)
                reply=${reply%%$'\t'*}
                [[ $reply != *[=:/] ]] || compopt -o nospace
                printf -v reply %q "${reply#"$kept"}"
                COMPREPLY+=("$reply")
                ;;
        esac
    done < <("$program" help --complete "${words[@]:1}" 2>/dev/null)
}
complete -F _vknerf vknerf
