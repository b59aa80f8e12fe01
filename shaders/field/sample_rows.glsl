// Returns the number of samples: of all rays or, with ROWS_CELLS, of the current chunk of cells.
uint sample_rows()
{
    return push.e == ROWS_CELLS ? state.dispatches[DISPATCH_ONE].finished
                                : min(state.sample_count, config.sample_capacity);
}
