# fish completion of vknerf: the program itself says what may come next, so that both are of one version.

function __vknerf_complete
    set -l words (commandline -opc)
    set -l word "$(string unescape -- "$(commandline -ct)")"
    for line in ($words[1] help --complete $words[2..-1] "$word" 2>/dev/null)
        if string match -qr '^:(files|directories) ' -- $line
            set -l keep (string split ' ' -- $line)[2]
            set -l path (string sub -s (math $keep + 1) -- "$word")
            set -l kept (string sub -l $keep -- "$word")
            if string match -q ':files *' -- $line
                printf '%s\n' $kept(__fish_complete_path "$path")
            else
                printf '%s\n' $kept(__fish_complete_directories "$path")
            end
        else
            echo $line
        end
    end
end

complete -c vknerf -f -a '(__vknerf_complete)'
