// Declarations of the parameter averaging passes export_step_counts, import_step_counts, export_parameters and
// import_parameters. A dispatch processes one parameter group:
//   push.a  first entry
//   push.c  number of entries
//   push.d  first parameter of that entry
//   push.e  parameters per entry

layout(std430, BINDING(STEPS)) buffer StepBuffer { float steps[]; }; // [entry] steps, then the share

// Share of an entry that no rank has updated: all ranks hold the same bits.
const float UNTOUCHED = -1.0;
