// How many samples there are: of the step's rays or, by push.e, cells of the occupancy grid that a chunk's are.
uint sample_rows()
{
    return push.e == ROWS_CELLS ? state.dispatches[DISPATCH_ONE].finished
                                : min(state.sample_count, config.sample_capacity);
}
