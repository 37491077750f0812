package recovery

// Every is for the test of how often progress is told.
var Every = every
