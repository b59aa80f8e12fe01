// Where ranks that took periods alone are averaged: what each entry's numbers are weighed by. The host says which
// entries, those of a group: push.a is the first of them, push.c how many, push.d their first parameter, push.e how
// many parameters an entry has.

layout(std430, BINDING(STEPS)) buffer StepBuffer { float steps[]; }; // of the entry, then its share

// The share of an entry that no rank has taken a step with: its numbers are the same on all, to the bit.
const float UNTOUCHED = -1.0;
