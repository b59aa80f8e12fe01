/* CRC-32C (Castagnoli; RFC 3720, 12.1), eight bytes at a time: tables[k][b] is the remainder of
 * byte b with k zero bytes behind it ("slicing-by-8", Kounavis and Berry 2005). */
#include <pthread.h>
#include <string.h>

#include "base/base.h"

#define SLICES     8
#define POLYNOMIAL 0x82f63b78u /* reflected */

static uint32_t tables[SLICES][256];

static void fill_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (POLYNOMIAL & (0u - (crc & 1u)));
        tables[0][i] = crc;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t before = tables[slice - 1][i];
            tables[slice][i] = before >> 8 ^ tables[0][before & 255u];
        }
}

uint32_t base_crc32c(uint32_t crc, const void *data, size_t size)
{
    static pthread_once_t filled = PTHREAD_ONCE_INIT;
    pthread_once(&filled, fill_tables);
    const uint8_t *bytes = data;
    crc = ~crc;
    for (; size >= SLICES; size -= SLICES, bytes += SLICES) {
        crc ^= (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
               (uint32_t)bytes[3] << 24;
        crc = tables[7][crc & 255u] ^ tables[6][crc >> 8 & 255u] ^ tables[5][crc >> 16 & 255u] ^
              tables[4][crc >> 24] ^ tables[3][bytes[4]] ^ tables[2][bytes[5]] ^
              tables[1][bytes[6]] ^ tables[0][bytes[7]];
    }
    for (; size > 0; size--)
        crc = crc >> 8 ^ tables[0][(crc ^ *bytes++) & 255u];
    return ~crc;
}
