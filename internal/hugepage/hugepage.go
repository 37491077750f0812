// Package hugepage asks the system for large pages of memory, where much is about
// to be filled that stays. Go does not ask for them, and many systems give them to
// those only who do.
package hugepage

import "reflect"

// size is that of a large page where they are most common.
const size = 2 << 20

// A Filler makes memory ready for objects that are made one after the other. The
// zero Filler is ready for use.
type Filler struct{ last uintptr }

// Next says that p, a pointer, leads to the next object. The large page around it
// is made ready, if that of the object before was another. All of it becomes
// resident: p should be one of so many that they fill it.
func (f *Filler) Next(p any) {
	page := reflect.ValueOf(p).Pointer() &^ (size - 1)
	if page != f.last {
		populate(page, size)
		f.last = page
	}
}

// Slice makes the memory of a slice ready that was just made, as far as it fills
// large pages.
func Slice(s any) {
	v := reflect.ValueOf(s)
	from := v.Pointer()
	end := from + uintptr(v.Len())*v.Type().Elem().Size()
	if from, end = (from+size-1)&^(size-1), end&^(size-1); from < end {
		populate(from, end-from)
	}
}
