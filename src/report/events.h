/* Inside of event files: the checksum of their records. */
#ifndef REPORT_EVENTS_H
#define REPORT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

/* CRC32C (Castagnoli): RFC 3720, appendix B.4. */
uint32_t events_crc32c(const void *data, size_t size);

#endif
