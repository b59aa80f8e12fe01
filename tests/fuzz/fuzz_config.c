/* Fuzzes what a configuration is read from. The first byte of the input says what the others are: j
 * a JSON text, J that of a run, whose other keys are ignored, k "key=value" and p a file of loss
 * scales. What is taken is written as JSON, read again and written once more, with the same result.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"
#include "fuzz.h"

static void check_again(const struct vkn_config *config)
{
    struct vkn_config again = {0};
    char *text = vkn_config_write_json(config);
    require(text != NULL, "it cannot be written");
    require(vkn_config_parse_json(&again, "again", text, false) == VKN_OK,
            "what was written is refused");
    char *second = vkn_config_write_json(&again);
    require(second != NULL && strcmp(text, second) == 0, "written and read again it is another");
    free(text);
    free(second);
}

static vkn_status set_pair(struct vkn_config *config, char *text)
{
    char *value = strchr(text, '=');
    if (value != NULL)
        *value++ = '\0';
    return vkn_config_set(config, "--set", text, value != NULL ? value : "");
}

/* A file without a name, so that nothing is left behind. */
static vkn_status set_schedule(struct vkn_config *config, const char *text, size_t size)
{
    static int file = -1;
    if (file < 0)
        file = memfd_create("schedule", MFD_CLOEXEC);
    require(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, text, size, 0) == (ssize_t)size,
            "no file in memory");
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    return vkn_config_set(config, "--set", "loss_scale.schedule", path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    base_log_threshold(BASE_LOG_NOTHING);
    if (size == 0 || data[0] == '\0' || strchr("jJkp", data[0]) == NULL)
        return 0;
    struct vkn_config config = {0};
    char *text = copy_text(data + 1, size - 1);
    vkn_status status = data[0] == 'k' ? set_pair(&config, text)
                        : data[0] == 'p'
                            ? set_schedule(&config, text, size - 1)
                            : vkn_config_parse_json(&config, "fuzz.json", text, data[0] == 'J');
    if (status == VKN_OK)
        check_again(&config);
    else
        require_message();
    free(text);
    return 0;
}
