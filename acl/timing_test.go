package acl_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pawl/acl"
)

// A wrong password of a user, with one password or with many, and a name that
// does not exist take the same time: medians of 10,000 attempts each, taken in
// turn. Once in three tries they must be within a third, for the machine may have
// other things to do.
func TestTimeTellsNoNames(t *testing.T) {
	one := acl.User{Name: "one", Enabled: true, Passwords: []acl.Password{acl.NewPassword("a")}}
	many, off := acl.User{Name: "many", Enabled: true}, acl.User{Name: "off", Passwords: one.Passwords}
	for i := range acl.MaxPasswords {
		many.Passwords = append(many.Passwords, acl.NewPassword(fmt.Sprint("b", i)))
	}
	guess := []byte("a wrong password of usual length")
	attempts := []func(){
		func() { acl.Reject(guess) },
		func() { one.Check(guess) },
		func() { many.Check(guess) },
		func() { off.Check(guess) },
	}
	var medians []time.Duration
	for range 3 {
		took := make([][]time.Duration, len(attempts))
		for range 10_000 {
			for i, attempt := range attempts {
				began := time.Now()
				attempt()
				took[i] = append(took[i], time.Since(began))
			}
		}
		medians = medians[:0]
		for _, list := range took {
			slices.Sort(list)
			medians = append(medians, list[len(list)/2])
		}
		if slices.Max(medians) <= slices.Min(medians)*4/3 {
			return
		}
	}
	t.Errorf("no such name, a user of one password, of many, one that is off: %v", medians)
}
