/* base: what every module uses: errors, log, memory, text, checksums, files, JSON, threads,
 * processes. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <vknerf/error.h>

struct cJSON;

#define BASE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- errors -------------------------------------------------------------------------------- */

/* Records the message (one line, no newline at the end) for vkn_last_error() and returns `status`,
 * so that a failing function ends in `return base_fail(VKN_BAD_INPUT, "%s: ...", path);`. */
__attribute__((format(__printf__, 2, 3))) vkn_status base_fail(vkn_status status,
                                                               const char *format, ...);

/* Returns from the calling function when `call` did not give VKN_OK. */
#define BASE_TRY(call)                       \
    do {                                     \
        vkn_status base_try_status = (call); \
        if (base_try_status != VKN_OK)       \
            return base_try_status;          \
    } while (0)

/* Keeps the last error and errno as they are until the end of the block: clean-up after a failure
 * may fail itself and must not replace the message of that failure. Use at the top of functions
 * that close or remove. */
#define BASE_KEEP_ERROR                                                                  \
    __attribute__((cleanup(base_error_restore))) struct base_kept_error base_kept_error; \
    base_error_keep(&base_kept_error)
struct base_kept_error {
    char message[1024];
    int number;
};
void base_error_keep(struct base_kept_error *kept);
void base_error_restore(struct base_kept_error *kept);

/* ---- log ------------------------------------------------------------------------------------ */

/* Levels of log lines. NOTHING is only a threshold, which hides all lines. */
enum base_log_level { BASE_LOG_DEBUG, BASE_LOG_INFO, BASE_LOG_WARNING, BASE_LOG_NOTHING };

/* Writes one line to standard error, or to the callback of vkn_log_to, if `level` is at or above
 * the threshold (default INFO; --quiet: WARNING), which base_log_threshold sets. Callable from any
 * thread. */
__attribute__((format(__printf__, 2, 3))) void base_log(enum base_log_level level,
                                                        const char *format, ...);
void base_log_threshold(enum base_log_level level);
/* Prefixes the lines of this thread with "NAME: " and drops those below WARNING, for threads whose
 * progress another thread reports. Keeps the pointer. NULL: no prefix. */
void base_log_prefix(const char *name);

/* Receiver of a call's progress, see vkn_progress_callback; `callback` NULL: none. */
struct base_progress {
    void (*callback)(void *context, const char *what, size_t done, size_t total);
    void *context;
};
/* Calls the receiver, on threads without base_log_prefix. Keeps the last error. */
void base_progress_report(const struct base_progress *progress, const char *what, size_t done,
                          size_t total);

/* ---- numbers -------------------------------------------------------------------------------- */

/* Sorts numbers, none of which is NaN, from the smallest to the largest. */
void base_sort(double *values, size_t count);
/* Sorts numbers and returns their median, 0 if there are none. */
double base_median(double *values, size_t count);

/* ---- memory --------------------------------------------------------------------------------- */

/* Allocates zeroed memory. Returns NULL and records an error if there is none or count * size
 * overflows. */
void *base_alloc(size_t count, size_t size);
/* Allocates an array of `count` pointers to `count` zeroed elements of `size` bytes, freed by one
 * free(). The indirection lets structures listed by the public API grow. Returns NULL and records
 * an error on failure. */
void *base_alloc_pointers(size_t count, size_t size);
/* As realloc; records no error. For allocation callbacks of other libraries. */
void *base_realloc(void *memory, size_t size);
/* Injects a failure for tests: the nth allocation of this module from now on fails; 0: none. */
void base_memory_fail_at(long nth);
/* Returns the number of allocations up to the injected failure; 0: it has happened. */
long base_memory_until_failure(void);
/* Prints into fresh memory, which the caller frees. NULL: failed, with an error recorded. */
__attribute__((format(__printf__, 1, 2))) char *base_format(const char *format, ...);

/* A text that grows by appending. Zero-initialise it; free `data` at the end. After a failed
 * append, `failed` stays set and further appends do nothing, so that one check at the end is
 * enough. */
struct base_text {
    char *data;
    size_t size, capacity;
    bool failed;
};
__attribute__((format(__printf__, 2, 3))) void base_text_add(struct base_text *text,
                                                             const char *format, ...);
/* Appends bytes; the text stays zero-terminated. */
void base_text_add_bytes(struct base_text *text, const void *bytes, size_t size);

/* ---- text of users and other programs -------------------------------------------------------- */

/* Returns whether the text is valid UTF-8. Errors and log lines need not be: vkn_clean_line makes
 * them so. */
bool base_is_utf8(const char *text);
/* Returns whether a list of words, separated by commas, has the word. NULL: an empty list. */
bool base_list_has(const char *list, const char *word);
/* Decodes the UTF-8 character at `text`, a zero-terminated string, into its code point (RFC 3629).
 * Returns its size in bytes; 0: not valid. */
size_t base_read_character(const char *text, uint32_t *character);

/* Makes this thread read and write numbers with a decimal point until the end of the block,
 * regardless of setlocale(). Use at the top of threads and of public functions that read or write
 * numbers. */
#define BASE_C_LOCALE                                                                 \
    __attribute__((cleanup(base_c_locale_leave))) struct base_c_locale base_c_locale; \
    base_c_locale_enter(&base_c_locale)
struct base_c_locale {
    void *previous; /* locale_t of the thread */
};
void base_c_locale_enter(struct base_c_locale *scope);
void base_c_locale_leave(struct base_c_locale *scope);

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Returns the integer in `size` bytes of a file, 8 at most, of which the first is the lowest, or
 * the highest if is_big_endian. */
static inline uint64_t base_integer_of(const uint8_t *bytes, size_t size, bool is_big_endian)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[is_big_endian ? size - 1 - i : i] << (8 * i);
    return value;
}

/* Compute checksums. base_crc32c continues the CRC-32C `crc` of preceding data (0: none);
 * base_sha256 writes SHA-256 in hexadecimal. */
uint32_t base_crc32c(uint32_t crc, const void *data, size_t size);
#define BASE_SHA256_TEXT 65
void base_sha256(const void *data, size_t size, char text[BASE_SHA256_TEXT]);

/* ---- version, time -------------------------------------------------------------------------- */

/* Returns the commit that the library was built from: "abc1234", "abc1234-dirty" if the sources had
 * changes, or "unknown". */
const char *base_commit(void);
double base_seconds(void); /* monotonic clock */
/* Waits; a signal ends the wait. */
void base_sleep(double seconds);

/* ---- files ---------------------------------------------------------------------------------- */

/* Returns the status for an errno. VKN_BAD_INPUT: the path cannot be opened (absent, no permission,
 * a folder); VKN_ERROR: any other failure (disk full, I/O error). Messages of this section name the
 * file and the reason. */
vkn_status base_status_of_errno(int error);
/* Reads a whole file into fresh memory and appends a zero byte; the caller frees *data. Refuses
 * files larger than `limit` bytes. Refuses pipes and devices, since reading may block or have side
 * effects. For files that the program found or that other files name. */
vkn_status base_file_read(const char *path, size_t limit, char **data, size_t *size);
/* As base_file_read, but accepts pipes and devices, up to 64 MiB. For files that the user names,
 * such as <(COMMAND) of a shell. */
vkn_status base_file_read_any(const char *path, size_t limit, char **data, size_t *size);
/* As base_file_read and base_file_read_any, for text: removes a byte order mark, and turns carriage
 * returns into line feeds if the text has no line feeds. */
vkn_status base_text_read(const char *path, size_t limit, char **text, size_t *size);
vkn_status base_text_read_any(const char *path, size_t limit, char **text, size_t *size);
/* Sets *mark to the size of the UTF-8 byte order mark at the start of `text`: 3 or 0.
 * VKN_BAD_INPUT: the text is UTF-16 or UTF-32. */
vkn_status base_text_bom(const char *name, const char *text, size_t size, size_t *mark);
/* Reads up to `most` bytes from the beginning of a regular file into `data`, and sets *size to
 * their number and *file_size (may be NULL) to the file's size. */
vkn_status base_file_read_beginning(const char *path, void *data, size_t most, size_t *size,
                                    uint64_t *file_size);
/* Replaces the content of `path` through a temporary file in the same folder, fsync and rename:
 * after a crash, a full disk or Ctrl-C the file holds either the old content or the new one. */
vkn_status base_file_replace(const char *path, const void *data, size_t size);
/* As base_file_replace, in steps: begin opens the stream, commit renames, abort removes; commit and
 * abort free the writer. Devices and pipes (/dev/stdout) are written directly. */
struct base_file_writer {
    FILE *stream;
    char *path, *temporary;
};
vkn_status base_file_begin(struct base_file_writer *writer, const char *path);
vkn_status base_file_commit(struct base_file_writer *writer);
void base_file_abort(struct base_file_writer *writer);
/* Removes temporary files that killed processes left in the folder and its subfolders: files named
 * as base_file_begin names them, if the process in the name no longer exists on this machine or the
 * name begins with `own`, a prefix that only the caller writes here. Failures are ignored. */
void base_remove_temporaries(const char *folder, const char *own);
/* Returns whether a file exists that is not a folder; true if that cannot be determined (EIO,
 * EACCES). */
bool base_file_exists(const char *path);
/* As base_file_exists, but returns an error if that cannot be determined. */
vkn_status base_file_find(const char *path, bool *exists);
bool base_is_folder(const char *path);
/* Creates the folder and its parents. */
vkn_status base_make_folder(const char *path);
/* As base_make_folder, for a folder that the user names: its parent must exist, since the path may
 * be mistyped. Exception: a parent called `runs` is created. */
vkn_status base_make_last_folder(const char *path);
/* Returns whether a path names the same file from every folder; on Windows, also "C:/x" does. */
bool base_path_is_absolute(const char *path);
/* Returns "folder/name", or `name` itself if it is absolute, in fresh memory. */
char *base_path_join(const char *folder, const char *name);
/* Returns the folder part of a path ("." if it has none) in fresh memory. */
char *base_path_folder(const char *path);
/* Returns the last component of a path, a part of `path`. */
const char *base_path_name(const char *path);

/* Checks that a folder contains only the entries in `own`, which ends with NULL, and hidden ones.
 * VKN_BAD_INPUT: "FOLDER: this folder contains NAME, which MAKER did not make; ...". */
vkn_status base_refuse_foreign(const char *folder, const char *const *own, const char *maker);

/* Locks a file for this process and for child processes that inherit the descriptor through
 * base_program_start. Creates the file if absent; does not follow links. The caller closes the
 * descriptor. VKN_BAD_INPUT: "FOLDER: process 12 on HOST is DOING; ...". If the file system has no
 * locks, only warns. */
vkn_status base_lock_take(const char *path, const char *folder, const char *doing, int *descriptor);

/* ---- JSON (by cJSON) ------------------------------------------------------------------------- */

/* Parses a file. Errors name file, line, column and problem; VKN_ERROR: out of memory. Limits: 64
 * levels and BASE_JSON_VALUES values, each of which takes about 80 bytes. The caller calls
 * cJSON_Delete. */
#define BASE_JSON_VALUES 4000000u
vkn_status base_json_read(const char *path, size_t limit, struct cJSON **json);
/* As base_json_read, from memory. `name` stands for the file in messages; text[size] is not read.
 * Accepts Python's NaN and Infinity. */
vkn_status base_json_parse(const char *name, const char *text, size_t size, struct cJSON **json);
/* Print the tree (may be NULL) as UTF-8 text, which the caller frees; bytes that are not UTF-8
 * become U+FFFD. Return NULL and record an error if memory was short, also if it was short while
 * this thread built the tree, so that callers need not check each addition. */
char *base_json_print(const struct cJSON *json);
char *base_json_print_unformatted(const struct cJSON *json);
/* Read a field of `object` into *value. Errors name `file` and the field: wrong type, not finite,
 * or outside of [minimum, maximum]. If an optional field is absent or null, *value does not change.
 * For an object inside a file, let `file` end in a dot: "scene.json: frames[3]." and "fl_x" give
 * "scene.json: frames[3].fl_x: missing"; otherwise ": " separates the two. */
vkn_status base_json_number(const struct cJSON *object, const char *name, const char *file,
                            bool required, double minimum, double maximum, double *value);
/* As base_json_number, for an item already found, such as an array element. */
vkn_status base_json_value(const struct cJSON *item, const char *name, const char *file,
                           double minimum, double maximum, double *value);
/* Returns the text of an object's member; "" if it is missing or no text. For JSON of this program.
 */
const char *base_json_text(const struct cJSON *object, const char *name);
vkn_status base_json_bool(const struct cJSON *object, const char *name, const char *file,
                          bool required, bool *value);
/* *value points into the JSON tree. */
vkn_status base_json_string(const struct cJSON *object, const char *name, const char *file,
                            bool required, const char **value);
/* Fails if `object` has a key that is not in `names`; the message suggests a similar name. */
vkn_status base_json_only_keys(const struct cJSON *object, const char *file,
                               const char *const *names, size_t count);
/* Records "FILE: NAME: PROBLEM" and returns VKN_BAD_INPUT. */
__attribute__((format(__printf__, 3, 4))) vkn_status base_json_fail(const char *file,
                                                                    const char *name,
                                                                    const char *format, ...);
/* Returns the name with the smallest edit distance to `word`, or NULL if none is close. */
const char *base_nearest(const char *word, const char *const *names, size_t count);

/* ---- threads --------------------------------------------------------------------------------- */

uint32_t base_processors(void); /* number of online processors, at least 1 */

/* Calls work(context, index) for index in [0, count) on as many threads as there are processors (at
 * most `count`) and waits for all. After a failure no further index is started, and the caller gets
 * status and message of the failure with the lowest index. `done`, if not NULL, is called on the
 * calling thread with the number of finished indices, after each and at least every second (for a
 * progress line). */
typedef vkn_status (*base_work)(void *context, size_t index);
vkn_status base_parallel(size_t count, base_work work, void *context,
                         void (*done)(void *context, size_t finished));

/* Starts work(context) on a thread of its own; if no thread can be created, runs it before
 * returning. Every started task needs base_task_wait. */
struct base_task;
vkn_status base_task_start(vkn_status (*work)(void *context), void *context,
                           struct base_task **task);
/* As base_task_start, but fails if no thread can be created: for work that waits for the calling
 * thread. */
vkn_status base_task_start_thread(vkn_status (*work)(void *context), void *context,
                                  struct base_task **task);
bool base_task_finished(struct base_task *task);
/* Waits for the task, frees it and sets *task to NULL (which it may be). Returns the work's status
 * and records its message. */
vkn_status base_task_wait(struct base_task **task);

/* ---- external programs and memory of the process --------------------------------------------- */

/* Returns the path of a program in PATH, in fresh memory; NULL: not found. */
char *base_program_find(const char *name);
/* A started program. Both numbers are the system's: of the process, and of the group of the process
 * and its children. */
struct base_process {
    intptr_t number, group;
};
/* Starts a program with `streams` as its standard streams (negative: /dev/null). The descriptor
 * `keep` (-1: none) stays open in the program and its children. Ctrl-C does not reach the program.
 * The program is asked to end when the thread that started it ends; on Windows, it is ended with
 * this process. Returns 0, or the errno of the failure. */
int base_program_start(const char *program, char *const arguments[], const int streams[3], int keep,
                       struct base_process *process);
/* Asks the program and its children to end (SIGTERM), or ends them `at_once` (SIGKILL). */
void base_program_end(const struct base_process *process, bool at_once);
/* Returns whether the program has ended, after waiting for its end if `wait` is set. Writes how it
 * ended: "" for success, else "exit status 1" or "signal 9". */
#define BASE_HOW_SIZE 64
bool base_program_ended(struct base_process *process, bool wait, char how[BASE_HOW_SIZE]);
/* Make a pipe for a program's standard input, ends[0], and write to its other end, ends[1]. As pipe
 * and write, but a program that reads no more makes the write fail with EPIPE and sends no signal.
 */
int base_input_pipe(int ends[2]);
ssize_t base_input_write(int end, const void *data, size_t size);

/* A program that base_program_run runs. */
struct base_program {
    const char *path;
    char *const *arguments; /* as for execve */
    int errors;             /* descriptor of its standard error; -1: with the output */
    int keep;               /* as for base_program_start */
    /* Gets what the program writes to its standard output. */
    void (*output)(void *context, const char *data, size_t size);
    /* Asked at least every 100 ms; true: the program must end. */
    bool (*must_end)(void *context);
    void *context;
};
/* Runs a program until it ends, and sets `how` as base_program_ended does. Once it must end, sends
 * SIGTERM to the program and its children, and SIGKILL 5 s later. After 10 s it waits no longer,
 * because a driver can hold a process, and `how` is "left behind". Kills child processes that
 * outlive the program. Returns 0, or the errno of a failed start. */
int base_program_run(const struct base_program *program, char how[BASE_HOW_SIZE]);

/* Return bytes: base_memory_total, the memory that the process may have (at least 1 GiB);
 * base_memory_available, the memory that it can still allocate; both are the smallest of the limits
 * of the machine, the control groups (containers) and the process. base_memory_usable leaves out a
 * sixteenth of the available memory as a reserve for untracked use, such as drivers' compilers. */
uint64_t base_memory_total(void);
uint64_t base_memory_available(void);
uint64_t base_memory_usable(void);
double base_mib(uint64_t bytes);
uint64_t base_address_space(void); /* bytes of address space in use; 0: unknown */
/* Checks before an allocation: VKN_BAD_INPUT "`what` needs ...: reduce `settings`" if `bytes`
 * exceed base_memory_usable. */
vkn_status base_memory_check(uint64_t bytes, const char *what, const char *settings);

/* Returns whether a signal handler or another thread has set *stop; NULL: never. */
bool base_stop_asked(const volatile sig_atomic_t *stop);

#include "base/api_guard.h"
#include "base/f16.h"

#endif
