/* Implements struct mpi_module with MPI. */
#include "mpi/mpi.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static char problem[MPI_MAX_ERROR_STRING + 64]; /* the returned error text */
static MPI_Request request = MPI_REQUEST_NULL;
static int rank, size;
static int *lists; /* [4][size]: counts and offsets to send, counts and offsets to receive */
/* Communicator of notices: empty messages by which a rank tells the others that it waits. */
static MPI_Comm notice_comm = MPI_COMM_NULL;
static MPI_Request *notices; /* [size], the notice to each rank; at most one in flight */

static const char *check(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return NULL;
    MPI_Error_string(code, text, &length);
    snprintf(problem, sizeof problem, "%s: %s", what, text);
    return problem;
}

static const char *find_layout(struct mpi_layout *layout)
{
    MPI_Comm machine;
    int local_rank = 0, local_size = 1;
    const char *failed =
        check("MPI_Comm_split_type", MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank,
                                                         MPI_INFO_NULL, &machine));
    if (failed)
        return failed;
    MPI_Comm_rank(machine, &local_rank);
    MPI_Comm_size(machine, &local_size);
    MPI_Comm_free(&machine);
    *layout = (struct mpi_layout){(uint32_t)rank, (uint32_t)size, (uint32_t)local_rank,
                                  (uint32_t)local_size};
    return NULL;
}

static const char *start(struct mpi_layout *layout)
{
    int level = 0;
    const char *failed =
        check("MPI_Init_thread", MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level));
    if (failed)
        return failed;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    lists = malloc(4 * (size_t)size * sizeof *lists);
    notices = malloc((size_t)size * sizeof *notices);
    if (!lists || !notices)
        return "out of memory";
    for (int i = 0; i < size; i++)
        notices[i] = MPI_REQUEST_NULL;
    failed = check("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &notice_comm));
    return failed ? failed : find_layout(layout);
}

static const char *gather(const void *mine, size_t bytes, void *all)
{
    return check("MPI_Iallgather", MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes,
                                                  MPI_BYTE, MPI_COMM_WORLD, &request));
}

static const char *broadcast(void *data, size_t bytes)
{
    if (bytes > INT_MAX)
        return "more than 2 GiB at once";
    return check("MPI_Ibcast", MPI_Ibcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
}

static const char *all_to_all(const float *values, const size_t *begins, float *shards)
{
    int *counts = lists, *offsets = lists + size, *to_counts = lists + 2 * size,
        *to_offsets = lists + 3 * size, length = (int)(begins[rank + 1] - begins[rank]);
    if (begins[size] > INT_MAX)
        return "more than 2^31 numbers";
    for (int i = 0; i < size; i++) {
        counts[i] = (int)(begins[i + 1] - begins[i]);
        offsets[i] = (int)begins[i];
        to_counts[i] = length;
        to_offsets[i] = i * length;
    }
    return check("MPI_Ialltoallv",
                 MPI_Ialltoallv(values, counts, offsets, MPI_FLOAT, shards, to_counts, to_offsets,
                                MPI_FLOAT, MPI_COMM_WORLD, &request));
}

static const char *all_gather(float *values, const size_t *begins)
{
    int *counts = lists, *offsets = lists + size;
    for (int i = 0; i < size; i++) {
        counts[i] = (int)(begins[i + 1] - begins[i]);
        offsets[i] = (int)begins[i];
    }
    return check("MPI_Iallgatherv",
                 MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, counts, offsets,
                                 MPI_FLOAT, MPI_COMM_WORLD, &request));
}

static const char *done(int *is_done)
{
    return check("MPI_Test", MPI_Test(&request, is_done, MPI_STATUS_IGNORE));
}

static void notify(int other)
{
    int sent = 0;
    if (other != rank && MPI_Test(&notices[other], &sent, MPI_STATUS_IGNORE) == MPI_SUCCESS && sent)
        MPI_Isend(NULL, 0, MPI_BYTE, other, 0, notice_comm, &notices[other]);
}

static void exchange_notices(int send, unsigned char *heard)
{
    int arrived = 0;
    MPI_Status from;
    memset(heard, 0, (size_t)size);
    for (int other = 0; send && other < size; other++)
        notify(other);
    while (MPI_Iprobe(MPI_ANY_SOURCE, 0, notice_comm, &arrived, &from) == MPI_SUCCESS && arrived &&
           MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, 0, notice_comm, MPI_STATUS_IGNORE) ==
               MPI_SUCCESS)
        heard[from.MPI_SOURCE] = 1;
}

static const char *finish(void)
{
    for (int i = 0; i < size; i++)
        if (notices[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&notices[i]);
    free(lists);
    lists = NULL;
    return check("MPI_Finalize", MPI_Finalize());
}

extern const struct mpi_module vknerf_mpi;
const struct mpi_module vknerf_mpi = {
    .version = MPI_MODULE_VERSION,
    .start = start,
    .gather = gather,
    .broadcast = broadcast,
    .all_to_all = all_to_all,
    .all_gather = all_gather,
    .done = done,
    .exchange_notices = exchange_notices,
    .finish = finish,
};
