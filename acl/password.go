package acl

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strings"
)

// Password is the SHA-256 of a random salt and a password. SHA-256 is no
// password hash for words that people choose: use long random ones.
type Password struct {
	Salt [16]byte
	Hash [sha256.Size]byte
}

// NewPassword hashes one with a new salt.
func NewPassword(password string) (p Password) {
	rand.Read(p.Salt[:]) // never fails: crypto/rand ends the process instead
	p.Hash = hash(p.Salt, []byte(password))
	return p
}

// ErrPassword is given for a text that String did not write.
var ErrPassword = errors.New("a hashed password is #, 32 hex digits, $ and 64 hex digits")

// ParsePassword reads what String wrote.
func ParsePassword(text string) (p Password, err error) {
	salt, sum, ok := strings.Cut(strings.TrimPrefix(text, "#"), "$")
	if !ok || !strings.HasPrefix(text, "#") || len(salt) != 2*len(p.Salt) || len(sum) != 2*len(p.Hash) {
		return Password{}, ErrPassword
	}
	if _, err := hex.Decode(p.Salt[:], []byte(salt)); err != nil {
		return Password{}, ErrPassword
	}
	if _, err := hex.Decode(p.Hash[:], []byte(sum)); err != nil {
		return Password{}, ErrPassword
	}
	return p, nil
}

// String is the rule that adds the password to a user: #salt$hash, in hex.
func (p Password) String() string {
	return "#" + hex.EncodeToString(p.Salt[:]) + "$" + hex.EncodeToString(p.Hash[:])
}

func hash(salt [16]byte, password []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(salt[:])
	h.Write(password)
	return [sha256.Size]byte(h.Sum(nil))
}

// Check says whether password is one of u's, in a time that does not depend on
// how much of it is right. Call Reject for a name that does not exist, so that
// it takes as long.
func (u *User) Check(password []byte) bool {
	ok := check(u.Passwords, password)
	return u.Enabled && (u.NoPass || ok == 1)
}

// Reject does the work of checking a password and says no.
func Reject(password []byte) { check(nil, password) }

// check compares password with all of the list, and with nothing as often as
// there could be more: how many passwords a name has, none included, does not
// show in the time.
func check(list []Password, password []byte) (ok int) {
	for i := range max(MaxPasswords, len(list)) {
		var p Password
		if i < len(list) {
			p = list[i]
		}
		sum := hash(p.Salt, password)
		same := subtle.ConstantTimeCompare(sum[:], p.Hash[:])
		if i < len(list) {
			ok |= same
		}
	}
	return ok
}
