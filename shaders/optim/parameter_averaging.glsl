// Declares what the passes of parameter averaging share: export_step_counts, import_step_counts,
// export_parameters and import_parameters. A dispatch processes one parameter group:
//   push.a  first entry
//   push.c  number of entries
//   push.d  first parameter of the first entry
//   push.e  parameters per entry
//   push.f  PACKED_MOMENT1 or PACKED_MOMENT2: which half of packed moments; 0: PARAMS holds f32

layout(std430, BINDING(STEPS)) buffer StepBuffer { float steps[]; }; // [entry] steps, then the share

// Share of an entry that no rank has updated, so that all ranks hold equal values.
const float UNTOUCHED = -1.0;
