package recovery

// Every is for the test of how often progress is told.
var Every = every

// CopyOf is an equal state that can be changed apart.
var CopyOf = copyOf

// WithStore is withStore.
var WithStore = withStore
