/* The tests that Windows skips: what they test does not exist there, or not under Wine. */
#ifndef TESTS_WINDOWS_SKIPS_H
#define TESTS_WINDOWS_SKIPS_H

#define NO_FORK    "Windows has no fork"
#define NO_PIPES   "Windows has no pipes in folders"
#define NO_LIMITS  "Windows has no limits of memory and of file sizes"
#define ODD_NAMES  "names of Windows contain no <>:\"|?*, and are Unicode"
#define NO_SCRIPTS "Windows starts no scripts and sends no signals"
#define SAME_CASE  "names of Windows that differ only in case are the same"
#define NO_LINKS   "Windows links only files that are there, by second names"
#define OLD_GLSL   "the tests of Windows have a shaderc without new extensions of GLSL"

static const struct {
    const char *program, *test, *reason;
} windows_skips[] = {
    {"test_api_use", "test_fork", NO_FORK},
    {"test_base", "test_read_pipes", NO_PIPES},
    {"test_base", "test_remove_temporaries", NO_FORK},
    {"test_base", "test_replace", "Windows has no permissions of POSIX"},
    {"test_base", "test_replace_flushes", "Windows writes changes of folders itself"},
    {"test_base", "test_links_nowhere", NO_LINKS},
    {"test_base", "test_failed_write_keeps_old", NO_LIMITS},
    {"test_base", "test_memory_check", NO_LIMITS},
    {"test_base", "test_memory_limits", "reads files of Linux about memory"},
    {"test_base", "test_stacks", "winpthreads has no default size of stacks"},
    {"test_base", "test_program_run", NO_SCRIPTS},
    {"test_base", "test_program_with_child", NO_SCRIPTS},
    {"test_base_text", "test_comma_locale", "Wine has no locale with a decimal comma"},
    {"test_events", "full_disk", NO_LIMITS},
    {"test_field_spirv", "test_limits", "Windows compiles GLSL without limits"},
    {"test_field_spirv", "test_stalled_children", NO_FORK},
    {"test_find_batch", "test_memory_limit", NO_LIMITS},
    {"test_gpu", "test_no_driver",
     "the loader is that of the system, also where a driver is missing"},
    {"test_gpu_memory", "test_memory_check", NO_LIMITS},
    {"test_gpu_shaders", "test_pipes", NO_PIPES},
    {"test_gpu_specialize", "test_layers", OLD_GLSL},
    {"test_gpu_specialize", "test_packed_sums", OLD_GLSL},
    {"test_import", "test_no_expat", "the program for Windows contains libexpat"},
    {"test_inspect", "test_names_of_unix", ODD_NAMES},
    {"test_masks", "test_find_any_case", SAME_CASE},
    {"test_masks", "test_captures_any_case", SAME_CASE},
    {"test_masks", "test_no_mask_other_case", SAME_CASE},
    {"test_prepare", "test_failures_of_scripts", NO_SCRIPTS},
    {"test_prepare", "test_names_of_unix", ODD_NAMES},
    {"test_prepare", "test_colmap", "the tests of Windows have no COLMAP"},
    {"test_prepare_hostile", "test_killed", NO_FORK},
    {"test_mesh_trained", "test_splats", "Wine's root has no Python"},
    {"test_ranks", "test_memory_of_all", NO_LIMITS},
    {"test_run_folder", "test_vanished", "Wine removes an open file when it is closed"},
    {"test_prepare_hostile", "test_odd_entries", NO_PIPES},
    {"test_prepare_hostile", "test_own_folder", NO_LINKS},
    {"test_report", "log_names_the_file", "Windows has no /dev/full"},
    {"test_report_compare", "names_of_unix", ODD_NAMES},
    {"test_scene", "test_unreadable_file", NO_LINKS},
    {"test_scene_images", "test_other_formats", "the tests of Windows have no libtiff"},
    {"test_scene_images", "test_hostile_jpeg", NO_LIMITS},
    {"test_scene_images", "test_names_of_unix",
     "backslashes separate folders, and names that differ only in case are the same"},
    {"test_scene_images", "test_names_odd_entries", NO_PIPES},
    {"test_scene_images", "test_pipes", NO_PIPES},
    {"test_scene_images", "test_capture_any_case", SAME_CASE},
    {"test_scene_write", "test_broken_links", NO_LINKS},
    {"test_scene_write", "test_linked_folders", NO_LINKS},
    {"test_system", "test_replace_open", "Wine replaces no file that is open"},
    {"test_system", "test_remove_open", "Wine removes an open file when it is closed"},
    {"test_tcnn", "test_special_files", NO_PIPES},
    {"test_video", "test_failures_of_scripts", NO_SCRIPTS},
    {"test_video", "test_names_of_unix", ODD_NAMES},
    {"test_video", "test_full_disk", "Windows has no /dev/full"},
};

/* Returns the row of a test of this program, NULL: the test is not skipped. */
static inline const char *why_skipped(const char *test)
{
    for (size_t i = 0; i < sizeof windows_skips / sizeof windows_skips[0]; i++)
        if (strcmp(TEST_PROGRAM, windows_skips[i].program) == 0 &&
            strcmp(test, windows_skips[i].test) == 0)
            return windows_skips[i].reason;
    return NULL;
}

/* Runs a group without the tests that are skipped, which are printed. Each row must be a test. */
static inline int run_on_windows(const char *name, const struct CMUnitTest *tests, size_t count,
                                 CMFixtureFunction setup, CMFixtureFunction teardown)
{
    struct CMUnitTest run[256];
    size_t run_count = 0, rows = 0;
    for (size_t i = 0; i < sizeof windows_skips / sizeof windows_skips[0]; i++)
        rows += strcmp(TEST_PROGRAM, windows_skips[i].program) == 0;
    for (size_t i = 0; i < count; i++)
        if (why_skipped(tests[i].name) == NULL)
            run[run_count++] = tests[i];
        else
            print_message("skipped: %s: %s\n", tests[i].name, why_skipped(tests[i].name));
    if (count - run_count != rows) {
        print_error("windows_skips.h has other tests of " TEST_PROGRAM "\n");
        return 1;
    }
    return run_count > 0 ? _cmocka_run_group_tests(name, run, run_count, setup, teardown) : 0;
}
#define _cmocka_run_group_tests run_on_windows

#endif
