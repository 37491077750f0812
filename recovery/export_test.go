package recovery

// Every is for the test of how often progress is told.
var Every = every

// CopyOf is an equal state that can be changed apart.
var CopyOf = copyOf

// WithStore is withStore.
var WithStore = withStore

// What a repair and a start do about what interrupted repairs have left.
var (
	FindInterrupted = interrupted
	NameInterrupted = nameInterrupted
	WarnInterrupted = warnInterrupted
)

// Encode is what the file STORE has.
func (id Identity) Encode() []byte { return id.encode() }
