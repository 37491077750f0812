package state

import "reflect"

// FieldsOf are the names of the fields of a kind, in the order of the bytes.
func FieldsOf(k Kind) []string {
	r := Record{Kind: k, Settings: new(Settings), Cron: new(Cron)}
	c := coder{mode: naming}
	r.walk(&c)
	return c.names
}

// KindEnd is the first kind that is none.
const KindEnd = kindEnd

// JobBytes is what one entry of the slab of jobs takes.
var JobBytes = reflect.TypeFor[job]().Size()
