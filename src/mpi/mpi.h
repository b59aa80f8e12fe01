/* mpi: messages between processes by MPI, in a module (vknerf-mpi.so) that is loaded where a
 * launcher such as mpirun has begun them: the program itself needs no MPI. This header is all that
 * the two share. */
#ifndef MPI_MPI_H
#define MPI_MPI_H

#include <stddef.h>
#include <stdint.h>

#define MPI_MODULE_SYMBOL  "vknerf_mpi"
#define MPI_MODULE_VERSION 2u

struct mpi_layout {
    uint32_t rank, size;             /* of all processes */
    uint32_t local_rank, local_size; /* of those on this machine */
};

/* All from one thread. What returns a text has failed, and that says why; it lasts until the next
 * call. An exchange is begun, then asked for until it is done; what was handed in stays as it is
 * until then. `begins` are [size + 1] places where each rank's part of an array of numbers begins,
 * then its end. */
struct mpi_module {
    uint32_t version;
    const char *(*start)(struct mpi_layout *layout);
    const char *(*gather)(const void *mine, size_t bytes, void *all);
    const char *(*broadcast)(void *data, size_t bytes); /* from rank 0 */
    /* parts[rank * own .. ]: what that rank has in this one's part, `own` numbers. */
    const char *(*all_to_all)(const float *values, const size_t *begins, float *shards);
    /* The parts of all from each's own. */
    const char *(*all_gather)(float *values, const size_t *begins);
    const char *(*done)(int *done);
    /* Tells all others that this rank waits, where `tell` is set, and fills heard[size] with
     * whether each of them has told so since the last call. Waits for nothing. */
    void (*exchange_notices)(int tell, unsigned char *heard);
    /* Waits for the others to come here as well. */
    const char *(*finish)(void);
};

#endif
