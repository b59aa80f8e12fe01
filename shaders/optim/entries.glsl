// Where the optimiser's entries are: parameters in a row that share one count of steps.

// The group of an entry: the last one that begins before it.
uint group_of(uint entry)
{
    uint group = 0u;
    [[unroll]] for (uint i = 1; i < MAX_GROUPS; i++)
        group += entry >= config.groups[i].first_entry ? 1u : 0u;
    return group;
}

// Entries [row, row + 1) * LOCAL_SIZE are of one group: what is the same for all lanes, and known to be,
// is looked up once for all of them.
Group group_of_row(uint row)
{
    return config.groups[group_of(row * LOCAL_SIZE)];
}

// Of all entries.
uint entry_rows()
{
    return (config.entry_count - 1u) / LOCAL_SIZE + 1u;
}

uint first_parameter(uint entry, Group group)
{
    return group.first + (entry - group.first_entry) * group.entry;
}
