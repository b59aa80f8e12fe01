/* mpi: interface to MPI in a shared object (vknerf-mpi.so), which is loaded if a launcher such as
 * mpirun has started the process. The program itself is not linked with MPI. */
#ifndef MPI_MPI_H
#define MPI_MPI_H

#include <stddef.h>
#include <stdint.h>

#define MPI_MODULE_SYMBOL  "vknerf_mpi"
#define MPI_MODULE_VERSION 2u

/* Ranks of this process and numbers of processes. */
struct mpi_layout {
    uint32_t rank, size;             /* of all processes */
    uint32_t local_rank, local_size; /* of the processes on this machine */
};

/* Functions of the shared object. All are called from one thread, and return NULL or an error text
 * that lasts until the next call. gather, broadcast, all_to_all and all_gather start a collective
 * operation; `done` then polls it, and its buffers must stay valid until it is done.
 * begins[size + 1]: where each rank's shard of an array begins, then the array's length. */
struct mpi_module {
    uint32_t version;
    const char *(*start)(struct mpi_layout *layout);
    const char *(*gather)(const void *mine, size_t bytes, void *all);
    const char *(*broadcast)(void *data, size_t bytes); /* from rank 0 */
    /* Receives every rank's values of this rank's shard in shards[size][length of the shard]. */
    const char *(*all_to_all)(const float *values, const size_t *begins, float *shards);
    /* Receives the other ranks' shards of values[begins[size]] in their places. */
    const char *(*all_gather)(float *values, const size_t *begins);
    /* Sets *done to whether the operation is done. */
    const char *(*done)(int *done);
    /* If `send`, sends all other ranks a notice that this rank waits. Sets heard[rank] to whether a
     * notice of that rank has arrived since the last call. Does not block. */
    void (*exchange_notices)(int send, unsigned char *heard);
    /* Finalises MPI, which waits for all ranks. */
    const char *(*finish)(void);
};

#endif
