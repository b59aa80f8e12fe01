// Returns the number of samples: those of the rays or, with ROWS_CELLS, those of a chunk's cells of
// the occupancy grid.
uint sample_rows()
{
    return push.e == ROWS_CELLS ? state.dispatches[DISPATCH_ONE].finished
                                : min(state.sample_count, config.sample_capacity);
}
