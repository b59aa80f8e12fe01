/* Finds nearest neighbours by an implicit k-d tree (Bentley 1975): the root of a range of points is
 * its median along the widest axis; lower points are in the left half, higher ones in the right. */
#include "render/neighbours.h"

#include <math.h>
#include <stdlib.h>

#include "shared/layout.h"

#define NEAREST     3
#define TASK_POINTS 4096u /* points of one task */

struct node {
    double at[3];
    uint32_t point, axis; /* index of the point; axis that its range is split along */
};

struct tree {
    struct node *nodes;
    size_t count;
    float *spacing; /* [point] */
};

/* ---- building -------------------------------------------------------------------------------- */

static void swap(struct node *a, struct node *b)
{
    struct node old = *a;
    *a = *b;
    *b = old;
}

/* Moves the element of rank `middle` along the axis to index `middle`, smaller ones before it,
 * larger ones after it (Hoare's selection). */
static void select_middle(struct node *nodes, size_t count, size_t middle, uint32_t axis)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        double pivot = nodes[low + (high - low) / 2].at[axis];
        size_t i = low, j = high;
        while (i <= j) {
            while (nodes[i].at[axis] < pivot)
                i++;
            while (nodes[j].at[axis] > pivot)
                j--;
            if (i > j)
                break;
            swap(&nodes[i++], &nodes[j]);
            if (j == 0)
                break;
            j--;
        }
        if (middle <= j)
            high = j;
        else if (middle >= i)
            low = i;
        else
            return;
    }
}

static uint32_t widest_axis(const struct node *nodes, size_t count)
{
    double widest = -1;
    uint32_t found = 0;
    for (uint32_t axis = 0; axis < 3; axis++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < count; i++) {
            low = fmin(low, nodes[i].at[axis]);
            high = fmax(high, nodes[i].at[axis]);
        }
        if (high - low > widest) {
            widest = high - low;
            found = axis;
        }
    }
    return found;
}

/* The recursion depth is logarithmic in the number of points. */
static void build(struct node *nodes, size_t count) // NOLINT(misc-no-recursion)
{
    while (count > 1) {
        size_t middle = count / 2;
        uint32_t axis = widest_axis(nodes, count);
        select_middle(nodes, count, middle, axis);
        nodes[middle].axis = axis;
        build(nodes, middle);
        nodes += middle + 1;
        count -= middle + 1;
    }
}

/* ---- searching ------------------------------------------------------------------------------- */

struct found {
    double squares[NEAREST]; /* squared distances, nearest first */
};

static void insert_distance(struct found *found, double square)
{
    for (int i = 0; i < NEAREST; i++)
        if (square < found->squares[i]) {
            double further = found->squares[i];
            found->squares[i] = square;
            square = further;
        }
}

/* Searches first the half that contains `from`, then the other if it may have a nearer point. */
static void search(const struct node *nodes, size_t count, // NOLINT(misc-no-recursion)
                   const struct node *from, struct found *found)
{
    while (count > 0) {
        size_t middle = count / 2;
        const struct node *root = &nodes[middle], *right = root + 1;
        double square = 0, away = from->at[root->axis] - root->at[root->axis];
        for (int i = 0; i < 3; i++)
            square += (root->at[i] - from->at[i]) * (root->at[i] - from->at[i]);
        if (root->point != from->point)
            insert_distance(found, square);
        size_t above = count - middle - 1;
        search(away < 0 ? nodes : right, away < 0 ? middle : above, from, found);
        if (away * away >= found->squares[NEAREST - 1])
            return;
        nodes = away < 0 ? right : nodes;
        count = away < 0 ? above : middle;
    }
}

static vkn_status find_spacings(void *context, size_t task)
{
    const struct tree *tree = context;
    size_t end = (task + 1) * TASK_POINTS < tree->count ? (task + 1) * TASK_POINTS : tree->count;
    for (size_t i = task * TASK_POINTS; i < end; i++) {
        struct found found = {{INFINITY, INFINITY, INFINITY}};
        double sum = 0;
        int used = 0;
        search(tree->nodes, tree->count, &tree->nodes[i], &found);
        for (; used < NEAREST && isfinite(found.squares[used]); used++)
            sum += found.squares[used];
        tree->spacing[tree->nodes[i].point] = used > 0 ? (float)sqrt(sum / used) : 0.0F;
    }
    return VKN_OK;
}

vkn_status neighbours_spacing(const struct MeshVertex *points, size_t count, float *spacing)
{
    struct tree tree = {.count = count, .spacing = spacing};
    tree.nodes = base_alloc(count + 1, sizeof *tree.nodes);
    if (!tree.nodes)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++) {
        tree.nodes[i].point = (uint32_t)i;
        for (int axis = 0; axis < 3; axis++)
            tree.nodes[i].at[axis] = (double)points[i].position[axis];
    }
    build(tree.nodes, count);
    vkn_status status =
        base_parallel((count + TASK_POINTS - 1) / TASK_POINTS, find_spacings, &tree, NULL);
    free(tree.nodes);
    return status;
}
