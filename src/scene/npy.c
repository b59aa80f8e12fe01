/* Reads NumPy's .npy files: a magic, a version, a Python dictionary as text, and the numbers. */
#include "scene/npy.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FILE_SIZE ((size_t)256 << 20)

static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* ---- the dictionary -------------------------------------------------------------------------- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* Returns the text from the value of 'key' on; NULL: there is no such key. */
static const char *find_value(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = strstr(text, key); at != NULL; at = strstr(at + 1, key)) {
        char quote = at > text ? at[-1] : '\0';
        if ((quote != '\'' && quote != '"') || at[length] != quote)
            continue;
        const char *colon = skip_blanks(at + length + 1);
        if (*colon == ':')
            return skip_blanks(colon + 1);
    }
    return NULL;
}

static vkn_status read_type(const char *name, const char *text, struct npy *array)
{
    const char *value = find_value(text, "descr");
    if (value == NULL)
        return base_json_fail(name, "descr", "missing from the header");
    bool quoted = value[0] == '\'' || value[0] == '"';
    bool ordered = quoted && (value[1] == '<' || value[1] == '>');
    bool sized = ordered && value[2] == 'f' && (value[3] == '4' || value[3] == '8');
    if (!sized || value[4] != value[0])
        return base_json_fail(name, "descr", "%.12s is not float32 or float64 ('<f4', '<f8')",
                              value);
    array->big_endian = value[1] == '>';
    array->item_size = value[3] == '4' ? 4 : 8;
    return VKN_OK;
}

static vkn_status read_order(const char *name, const char *text, struct npy *array)
{
    const char *value = find_value(text, "fortran_order");
    if (value == NULL)
        return base_json_fail(name, "fortran_order", "missing from the header");
    array->fortran_order = strncmp(value, "True", 4) == 0;
    if (!array->fortran_order && strncmp(value, "False", 5) != 0)
        return base_json_fail(name, "fortran_order", "%.12s is neither True nor False", value);
    return VKN_OK;
}

static vkn_status read_shape(const char *name, const char *text, struct npy *array)
{
    size_t *const lengths[2] = {&array->rows, &array->columns};
    const char *value = find_value(text, "shape");
    if (value == NULL || *value != '(')
        return base_json_fail(name, "shape", "missing from the header");
    value = skip_blanks(value + 1);
    size_t count = 0;
    for (; *value >= '0' && *value <= '9' && count < 3; count++) {
        char *end = NULL;
        unsigned long long length = strtoull(value, &end, 10); /* ULLONG_MAX when too large */
        if (count < 2)
            *lengths[count] = length > SIZE_MAX ? SIZE_MAX : (size_t)length;
        value = skip_blanks(end);
        if (*value == ',')
            value = skip_blanks(value + 1);
    }
    if (*value != ')' || count != 2)
        return base_json_fail(name, "shape", "not that of a matrix (two lengths)");
    return VKN_OK;
}

static vkn_status read_header(const char *name, const uint8_t *data, size_t size, char **text,
                              struct npy *array)
{
    if (size < 10 || !npy_is(data, size))
        return base_fail(VKN_BAD_INPUT, "%s: not an .npy file (its magic is missing)", name);
    unsigned version = data[6];
    if (version < 1 || version > 3)
        return base_fail(VKN_BAD_INPUT, "%s: .npy version %u.%u is not supported (1 to 3 are)",
                         name, version, data[7]);
    size_t start = version == 1 ? 10 : 12;
    if (size < start)
        return base_fail(VKN_BAD_INPUT, "%s: header: cut off", name);
    size_t length = data[8] | (size_t)data[9] << 8;
    if (version > 1)
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (length > size - start)
        return base_fail(VKN_BAD_INPUT, "%s: header: of its %zu bytes only %zu are in the file",
                         name, length, size - start);
    array->begin = start + length;
    *text = base_format("%.*s", (int)(length < 65536 ? length : 65536), data + start);
    if (*text == NULL)
        return VKN_ERROR;
    for (char *c = *text; *c != '\0'; c++)
        *c = (char)(*c == '\n' || *c == '\r' ? ' ' : *c); /* for messages of one line */
    BASE_TRY(read_type(name, *text, array));
    BASE_TRY(read_order(name, *text, array));
    return read_shape(name, *text, array);
}

/* ---- the numbers ----------------------------------------------------------------------------- */

static double read_number(const struct npy *array, const uint8_t *data)
{
    uint64_t bits = base_integer_of(data, array->item_size, array->big_endian);
    if (array->item_size == 4) {
        uint32_t low = (uint32_t)bits;
        float single = 0;
        memcpy(&single, &low, sizeof(single));
        return single;
    }
    double number = 0;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* Returns the position of a number in the file. */
static size_t position_of(const struct npy *array, size_t row, size_t column)
{
    size_t index =
        array->fortran_order ? column * array->rows + row : row * array->columns + column;
    return array->begin + index * array->item_size;
}

static vkn_status read_numbers(const char *name, const uint8_t *data, size_t size,
                               struct npy *array)
{
    size_t rows = array->rows, columns = array->columns;
    size_t available = (size - array->begin) / array->item_size;
    if (columns == 0 || rows > available / columns)
        return base_json_fail(name, "shape",
                              "(%zu, %zu) does not match the %zu numbers in the file", rows,
                              columns, available);
    array->values = base_alloc(rows * columns, sizeof(double));
    if (array->values == NULL)
        return VKN_ERROR;
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column++)
            array->values[row * columns + column] =
                read_number(array, data + position_of(array, row, column));
    return VKN_OK;
}

void npy_set(struct npy *array, size_t row, size_t column, double value)
{
    float single = (float)value;
    uint32_t low = 0;
    uint64_t bits = 0;
    memcpy(&low, &single, sizeof(low));
    memcpy(&bits, &value, sizeof(bits));
    bits = array->item_size == 4 ? low : bits;
    char *data = array->data + position_of(array, row, column);
    for (size_t i = 0; i < array->item_size; i++)
        data[array->big_endian ? array->item_size - 1 - i : i] = (char)(bits >> (8 * i));
}

vkn_status npy_parse(const char *name, const uint8_t *data, size_t size, struct npy *array)
{
    char *text = NULL;
    *array = (struct npy){.item_size = sizeof(double)};
    vkn_status status = read_header(name, data, size, &text, array);
    if (status == VKN_OK)
        status = read_numbers(name, data, size, array);
    free(text);
    return status;
}

vkn_status npy_read(const char *file, struct npy *array)
{
    char *data = NULL;
    size_t size = 0;
    *array = (struct npy){0};
    BASE_TRY(base_file_read(file, MAX_FILE_SIZE, &data, &size));
    vkn_status status = npy_parse(file, (const uint8_t *)data, size, array);
    array->data = data;
    array->size = size;
    return status;
}

bool npy_is(const uint8_t *data, size_t size)
{
    return size >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
}

void npy_free(struct npy *array)
{
    free(array->values);
    free(array->data);
    *array = (struct npy){0};
}
