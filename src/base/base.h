/* base: the ground that every room stands on: errors, log, memory, files, JSON, threads. */
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
__attribute__((format(printf, 2, 3))) vkn_status base_fail(vkn_status status, const char *format,
                                                           ...);

/* Returns from the calling function when `call` did not give VKN_OK. */
#define BASE_TRY(call)                       \
    do {                                     \
        vkn_status base_try_status = (call); \
        if (base_try_status != VKN_OK)       \
            return base_try_status;          \
    } while (0)

/* Cleaning up after a failure may fail itself: what it records until the end of the block, and
 * errno, is forgotten, so that the failure's own message stays. Stands at the top of what closes or
 * removes. */
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

/* No line has the level NOTHING: it is a threshold, which hides all of them. */
enum base_log_level { BASE_LOG_DEBUG, BASE_LOG_INFO, BASE_LOG_WARNING, BASE_LOG_NOTHING };

/* Writes one line to standard error, or where vkn_log_to says, when `level` is at or above the
 * threshold (default INFO; --quiet raises it to WARNING). Safe from any thread. */
__attribute__((format(printf, 2, 3))) void base_log(enum base_log_level level, const char *format,
                                                    ...);
void base_log_threshold(enum base_log_level level);
/* From here on this thread's lines begin with "NAME: ", and are warnings alone: there is another
 * who tells people what goes on. Kept by reference; NULL: not any more. */
void base_log_prefix(const char *name);

/* ---- memory --------------------------------------------------------------------------------- */

/* Zeroed memory; NULL with an error recorded when there is none (or count * size overflows). */
void *base_alloc(size_t count, size_t size);
/* An array of `count` pointers to as many zeroed elements of `size` bytes, all of which one free()
 * frees. So structures that the public API lists can grow. NULL with an error recorded. */
void *base_alloc_pointers(size_t count, size_t size);
/* realloc, without an error recorded; for memory that others allocate for us. */
void *base_realloc(void *memory, size_t size);
/* For tests: of this room's allocations the `nth` from here on fails; 0: none does. */
void base_memory_fail_at(long nth);
long base_memory_until_failure(void); /* allocations up to that one; 0: it has failed */
/* A printf into fresh memory that the caller frees; NULL with an error recorded. */
__attribute__((format(printf, 1, 2))) char *base_format(const char *format, ...);

/* A growing text; zero-initialise it, free `data` at the end. After a failed append `failed` stays
 * set and further appends do nothing, so that one check at the end is enough. */
struct base_text {
    char *data;
    size_t size, capacity;
    bool failed;
};
__attribute__((format(printf, 2, 3))) void base_text_add(struct base_text *text, const char *format,
                                                         ...);
void base_text_add_bytes(struct base_text *text, const void *bytes, size_t size);

/* ---- text from outside ----------------------------------------------------------------------- */

/* vkn_clean_line is done to every error and every line of the log. */
bool base_is_utf8(const char *text);
/* Bytes of the character at `text`, which ends with a zero byte, and its code point (RFC 3629); 0:
 * no character. */
size_t base_read_character(const char *text, uint32_t *character);

/* From here to the end of the block this thread reads and writes numbers with a point, whatever
 * setlocale() was told. Stands at the top of public functions that do either, and of threads. */
#define BASE_C_LOCALE                                                                 \
    __attribute__((cleanup(base_c_locale_leave))) struct base_c_locale base_c_locale; \
    base_c_locale_enter(&base_c_locale)
struct base_c_locale {
    void *before;
};
void base_c_locale_enter(struct base_c_locale *scope);
void base_c_locale_leave(struct base_c_locale *scope);

/* ---- checksums ------------------------------------------------------------------------------- */

/* CRC-32C of what `crc` is the sum of (0: nothing yet), followed by `data`; SHA-256 in hexadecimal.
 */
uint32_t base_crc32c(uint32_t crc, const void *data, size_t size);
#define BASE_SHA256_TEXT 65
void base_sha256(const void *data, size_t size, char text[BASE_SHA256_TEXT]);

/* ---- version, time -------------------------------------------------------------------------- */

/* Of the sources that the library was built from: "abc1234", "abc1234-dirty" with changes on top of
 * it, or "unknown". */
const char *base_commit(void);
double base_seconds(void); /* monotonic clock */

/* ---- files ---------------------------------------------------------------------------------- */

/* Messages of this section name the file and the reason. A path that cannot be opened (absent, no
 * permission, a folder) is VKN_BAD_INPUT; what fails later (disk full, I/O error) is VKN_ERROR. */
vkn_status base_status_of_errno(int error);
/* The whole file in fresh memory with a zero byte behind it; the caller frees `*data`. Refuses
 * files over `limit` bytes, and never opens pipes and devices, which files that are found, or named
 * by other files, may be. */
vkn_status base_file_read(const char *path, size_t limit, char **data, size_t *size);
/* Pipes and devices, too, up to 64 MiB: files that the user names, such as <(COMMAND) of a shell.
 */
vkn_status base_file_read_any(const char *path, size_t limit, char **data, size_t *size);
/* The same of a text: without a byte order mark, with line feeds where carriage returns alone ended
 * its lines. */
vkn_status base_text_read(const char *path, size_t limit, char **text, size_t *size);
vkn_status base_text_read_any(const char *path, size_t limit, char **text, size_t *size);
/* Bytes of the UTF-8 byte order mark that `text` begins with (3 or 0); VKN_BAD_INPUT for UTF-16 and
 * UTF-32. */
vkn_status base_text_bom(const char *name, const char *text, size_t size, size_t *mark);
/* Up to `most` bytes from a regular file's beginning into `data`; its size, unless `file_size` is
 * NULL. */
vkn_status base_file_read_beginning(const char *path, void *data, size_t most, size_t *size,
                                    uint64_t *file_size);
/* Writes `path` through a temporary file in the same folder, fsync and rename: after a crash, a
 * full disk or Ctrl-C the old content or the new one is there, never a part. */
vkn_status base_file_replace(const char *path, const void *data, size_t size);
/* The same in pieces: begin gives a stream, commit renames, abort removes; both free the writer. A
 * device or pipe
 * (/dev/stdout) is written directly. */
struct base_file_writer {
    FILE *stream;
    char *path, *temporary;
};
vkn_status base_file_begin(struct base_file_writer *writer, const char *path);
vkn_status base_file_commit(struct base_file_writer *writer);
void base_file_abort(struct base_file_writer *writer);
/* Removes what processes that were killed left of these, in the folder and the folders in it: files
 * that are named as begin names them, whose process is gone from this machine, or whose names begin
 * with `own`, which nobody but the caller may write here. What cannot be removed stays. */
void base_remove_temporaries(const char *folder, const char *own);
/* Whether there is a file that is not a folder; true as well where that cannot be seen (EIO,
 * EACCES). */
bool base_file_exists(const char *path);
/* base_file_exists, but an error where that cannot be seen. */
vkn_status base_file_find(const char *path, bool *exists);
bool base_is_folder(const char *path);
/* Makes the folder and its parents. */
vkn_status base_make_folder(const char *path);
/* The same of one that a user has named: its parent has to be there, since it may be mistyped, or
 * be called `runs`. */
vkn_status base_make_last_folder(const char *path);
/* "folder/name" in fresh memory (name itself when absolute); the caller frees. */
char *base_path_join(const char *folder, const char *name);
/* Folder part of a path ("." when none) in fresh memory. */
char *base_path_folder(const char *path);

/* Locks a file, made where there is none but never through a link, for this process and for
 * programs that get its descriptor from base_program_start. The caller closes it. VKN_BAD_INPUT:
 * "FOLDER: process 12 on HOST is DOING; ...". File systems without locks are a warning alone. */
vkn_status base_lock_take(const char *path, const char *folder, const char *doing, int *descriptor);

/* ---- JSON (on cJSON) ------------------------------------------------------------------------- */

/* Parses a file; errors name file, line and column and what is wrong there; VKN_ERROR without
 * memory. No text may hold more than 64 levels or BASE_JSON_VALUES values, of which each takes
 * about 80 bytes. The caller calls cJSON_Delete. */
#define BASE_JSON_VALUES 4000000u
vkn_status base_json_read(const char *path, size_t limit, struct cJSON **json);
/* The same from memory; `text[size]` need not be readable, `name` stands for the file. Reads
 * Python's NaN and Infinity. */
vkn_status base_json_parse(const char *name, const char *text, size_t size, struct cJSON **json);
/* The tree, which may be NULL, as UTF-8 text that the caller frees: cJSON_Print, or
 * PrintUnformatted; bytes of strings that are not UTF-8 become U+FFFD. NULL with an error recorded
 * when memory was short, also while this thread built the tree, so that nobody need check each
 * addition. */
char *base_json_print(const struct cJSON *json);
char *base_json_print_unformatted(const struct cJSON *json);
/* Typed access. `file` and the name of the field appear in the message when a present field has
 * another type, is not finite or is out of [minimum, maximum]. An absent (or null) optional field
 * leaves *value as it is. For an object inside a file let `file` end in a dot: "scene.json:
 * frames[3]." and "fl_x" make "scene.json: frames[3].fl_x: missing"; otherwise ": " stands between
 * the two. */
vkn_status base_json_number(const struct cJSON *object, const char *name, const char *file,
                            bool required, double minimum, double maximum, double *value);
/* The number of an array element or a field already found. */
vkn_status base_json_value(const struct cJSON *item, const char *name, const char *file,
                           double minimum, double maximum, double *value);
vkn_status base_json_bool(const struct cJSON *object, const char *name, const char *file,
                          bool required, bool *value);
/* *value points into the JSON tree. */
vkn_status base_json_string(const struct cJSON *object, const char *name, const char *file,
                            bool required, const char **value);
/* Fails when `object` has a key that is not in `names`; the message suggests the nearest name. */
vkn_status base_json_only_keys(const struct cJSON *object, const char *file,
                               const char *const *names, size_t count);
/* Records "<file>: <name>: <problem>" and returns VKN_BAD_INPUT. */
__attribute__((format(printf, 3, 4))) vkn_status base_json_fail(const char *file, const char *name,
                                                                const char *format, ...);
/* The name closest in spelling to `word`, or NULL when none is close. */
const char *base_nearest(const char *word, const char *const *names, size_t count);

/* ---- threads --------------------------------------------------------------------------------- */

uint32_t base_processors(void); /* that are online; at least 1 */

/* Calls work(context, index) for index in [0, count) on as many threads as there are processors (at
 * most count) and returns when all are done. The first failure's status and message become the
 * caller's; indices not started by then are not run. `done`, when not NULL, is called on the
 * calling thread with the number finished so far: after each, and every second (for a progress
 * line). */
typedef vkn_status (*base_work)(void *context, size_t index);
vkn_status base_parallel(size_t count, base_work work, void *context,
                         void (*done)(void *context, size_t finished));

/* One call of work(context) on a thread of its own, where one can be had; else it is over when
 * start returns. Every task that was started needs its wait. */
struct base_task;
vkn_status base_task_start(vkn_status (*work)(void *context), void *context,
                           struct base_task **task);
/* The same, but always on a thread of its own: for work that waits for the caller's. */
vkn_status base_task_start_thread(vkn_status (*work)(void *context), void *context,
                                  struct base_task **task);
bool base_task_finished(struct base_task *task);
/* Waits, frees and nulls *task; the work's status and message become the caller's. *task may be
 * NULL. */
vkn_status base_task_wait(struct base_task **task);

/* ---- programs of others ---------------------------------------------------------------------- */

/* The program's path, which the caller frees; NULL when no folder of PATH has it. */
char *base_program_find(const char *name);
/* Standard streams are these descriptors, /dev/null where negative; `keep` (-1: none) stays open in
 * the program and in what it starts. It gets SIGTERM when the thread that called this ends,
 * however, and is a process group of its own, so that Ctrl-C does not reach it. 0, or why it cannot
 * be started as errno has it. */
int base_program_start(const char *program, char *const arguments[], const int streams[3], int keep,
                       pid_t *process);
/* Whether it has ended, and how: "" as it should, else "exit status 1" or "signal 9". */
#define BASE_HOW_SIZE 64
bool base_program_ended(pid_t process, bool wait, char how[BASE_HOW_SIZE]);

/* Bytes of memory that the process may have, at least 1 GiB, and can still take: the least of the
 * machine's, its control groups' (containers) and its own limits; usable: less a sixteenth, for
 * what nobody counts, such as compilers. */
uint64_t base_memory_total(void);
uint64_t base_memory_available(void);
uint64_t base_memory_usable(void);
double base_mib(uint64_t bytes);
uint64_t base_address_space(void); /* bytes of address space that the process has; 0: not known */
/* Before they are taken: VKN_BAD_INPUT "`what` needs ...: reduce `settings`" for more bytes than
 * are usable. */
vkn_status base_memory_check(uint64_t bytes, const char *what, const char *settings);

/* Whether a job is to stop: *stop, which a signal handler or another thread sets; NULL: never. */
bool base_stop_asked(const volatile sig_atomic_t *stop);

#include "base/api_guard.h"
#include "base/f16.h"

#endif
