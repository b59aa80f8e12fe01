/* Creates answers and sends them by libmicrohttpd. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

struct answer answer_text(unsigned code, const char *type, char *text)
{
    if (!text)
        return (struct answer){.code = 500};
    return (struct answer){.code = code, .type = type, .data = text, .size = strlen(text)};
}

struct answer answer_json(unsigned code, cJSON *json)
{
    char *printed = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return answer_text(code, "application/json", printed);
}

bool answer_add_text(cJSON *json, const char *name, const char *text)
{
    char *clean = text ? vkn_to_utf8(text) : NULL;
    bool added = clean && cJSON_AddStringToObject(json, name, clean);
    vkn_free(clean);
    return added;
}

struct answer answer_error(unsigned code, const char *message)
{
    cJSON *json = cJSON_CreateObject();
    answer_add_text(json, "error", message);
    return answer_json(code, json);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Allows only scripts and styles with the answer's nonce. */
#define POLICY                                                                               \
    "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; img-src 'self' blob: " \
    "data:; media-src 'self'; connect-src "                                                  \
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static char *with_nonce(const char *begin, const char *end, const char *nonce)
{
    const size_t mark = sizeof PAGE_NONCE - 1, length = strlen(nonce);
    size_t marks = 0;
    for (const char *at = begin; (at = memmem(at, (size_t)(end - at), PAGE_NONCE, mark));
         at += mark)
        marks++;
    char *text = malloc((size_t)(end - begin) + marks * length + 1), *to = text;
    while (text && begin < end) {
        const char *found = memmem(begin, (size_t)(end - begin), PAGE_NONCE, mark);
        size_t size = (size_t)((found ? found : end) - begin);
        memcpy(to, begin, size);
        to += size;
        if (found)
            memcpy(to, nonce, length);
        to += found ? length : 0;
        begin = found ? found + mark : end;
    }
    if (text)
        *to = '\0';
    return text;
}

struct answer answer_page(unsigned code, const char *begin, const char *end)
{
    uint8_t bytes[16];
    char nonce[2 * sizeof bytes + 1];
    if (!address_random(bytes, sizeof bytes))
        return (struct answer){.code = 500};
    address_hex(bytes, sizeof bytes, nonce);
    struct answer answer =
        answer_text(code, "text/html; charset=utf-8", with_nonce(begin, end, nonce));
    snprintf(answer.policy, sizeof answer.policy, POLICY, nonce, nonce);
    return answer;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void add_facts(struct MHD_Response *response, const struct frame_facts *facts)
{
    char text[32];
    snprintf(text, sizeof text, "%u", facts->width);
    mhd.add_response_header(response, "X-Width", text);
    snprintf(text, sizeof text, "%u", facts->height);
    mhd.add_response_header(response, "X-Height", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)facts->step);
    mhd.add_response_header(response, "X-Step", text);
    snprintf(text, sizeof text, "%.2f", facts->milliseconds);
    mhd.add_response_header(response, "X-Milliseconds", text);
    snprintf(text, sizeof text, "%.3f", facts->refined_share);
    mhd.add_response_header(response, "X-Refined", text);
}

/* Lets the browser save the content under the name (RFC 6266, RFC 8187). */
static void add_file_name(struct MHD_Response *response, const char *name)
{
    static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    char text[1024] = "attachment; filename*=UTF-8''";
    size_t at = strlen(text);
    for (; *name && at + 4 < sizeof text; name++)
        at += (size_t)snprintf(text + at, sizeof text - at, strchr(kept, *name) ? "%c" : "%%%02X",
                               (unsigned char)*name);
    mhd.add_response_header(response, "Content-Disposition", text);
}

void answer_clear(struct answer *answer)
{
    if (answer->file_name)
        close(answer->file);
    free(answer->file_name);
    free(answer->data);
    *answer = (struct answer){0};
}

enum MHD_Result answer_queue(struct exchange *exchange)
{
    struct answer *answer = &exchange->answer;
    bool is_file = answer->file_name != NULL;
    struct MHD_Response *response =
        is_file ? mhd.create_response_from_fd(answer->size, answer->file)
                : mhd.create_response_from_buffer(answer->size, answer->data ? answer->data : "",
                                                  answer->data ? MHD_RESPMEM_MUST_FREE
                                                               : MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    if (is_file)
        add_file_name(response, answer->file_name);
    free(answer->file_name);
    answer->file_name = NULL; /* file and data are owned by the response now */
    answer->data = NULL;
    if (answer->type)
        mhd.add_response_header(response, "Content-Type", answer->type);
    if (answer->policy[0])
        mhd.add_response_header(response, "Content-Security-Policy", answer->policy);
    if (answer->is_frame)
        add_facts(response, &answer->facts);
    mhd.add_response_header(response, "Cache-Control", "no-store");
    mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
    mhd.add_response_header(response, "Referrer-Policy", "no-referrer");
    if (exchange->closes)
        mhd.add_response_header(response, "Connection", "close");
    connection_begin_phase(exchange->connection_data, is_file ? PHASE_FILE : PHASE_ANSWER);
    enum MHD_Result result = mhd.queue_response(exchange->connection, answer->code, response);
    mhd.destroy_response(response);
    return result;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

void answer_park(struct exchange *exchange)
{
    exchange->parked = true;
    exchange->parked_at = viewer_now();
    mhd.suspend_connection(exchange->connection);
}

void answer_set(struct exchange *exchange, const struct answer *answer)
{
    answer_clear(&exchange->answer);
    exchange->answer = *answer;
    exchange->answered = true;
    if (exchange->parked)
        mhd.resume_connection(exchange->connection);
    exchange->parked = false;
}

void answer_fail(struct exchange *exchange, unsigned code, const char *format, ...)
{
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const struct answer answer = answer_error(code, message);
    answer_set(exchange, &answer);
}
