// Where ranks that took periods alone are averaged: what each entry's numbers are weighed by.

layout(std430, BINDING(STEPS)) buffer StepBuffer { float steps[]; }; // of the entry, then its share

// The share of an entry that no rank has taken a step with: its numbers are the same on all, to the bit.
const float UNTOUCHED = -1.0;
