/* Computes checksums: CRC-32C and SHA-256. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* ---- CRC-32C --------------------------------------------------------------------------------- */

/* CRC-32C (Castagnoli; RFC 3720, 12.1), eight bytes at a time: tables[k][b] is the remainder of
 * byte b followed by k zero bytes ("slicing-by-8", Kounavis and Berry 2005). */
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
            uint32_t previous = tables[slice - 1][i];
            tables[slice][i] = previous >> 8 ^ tables[0][previous & 255u];
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

/* ---- SHA-256 (FIPS 180-4, section 6.2) ------------------------------------------------------- */

#define BLOCK 64u

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned bits)
{
    return x >> bits | x << (32 - bits);
}

static void add_block(uint32_t hash[8], const uint8_t block[BLOCK])
{
    uint32_t w[64], v[8];
    for (size_t t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | (uint32_t)block[4 * t + 3];
    for (size_t t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[t - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, hash, sizeof v);
    for (size_t t = 0; t < 64; t++) {
        uint32_t a = v[0], e = v[4];
        uint32_t first = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                         ((e & v[5]) ^ (~e & v[6])) + constants[t] + w[t];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                          ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[0] = first + second;
        v[4] += first;
    }
    for (size_t i = 0; i < 8; i++)
        hash[i] += v[i];
}

void base_sha256(const void *data, size_t size, char text[BASE_SHA256_TEXT])
{
    uint32_t hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *bytes = data;
    uint8_t last[2 * BLOCK] = {0};
    size_t rest = size % BLOCK, end = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    for (size_t at = 0; at < size - rest; at += BLOCK)
        add_block(hash, bytes + at);
    /* Padding (5.1.1): a 1 bit, zeros, and the number of bits as 64-bit number. */
    if (rest)
        memcpy(last, bytes + (size - rest), rest);
    last[rest] = 0x80;
    for (size_t i = 0; i < 8; i++)
        last[end - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    for (size_t at = 0; at < end; at += BLOCK)
        add_block(hash, last + at);
    for (size_t i = 0; i < 8; i++)
        snprintf(text + 8 * i, 9, "%08x", hash[i]);
}
