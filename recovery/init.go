package recovery

import (
	"errors"
	"fmt"
)

// Init makes a store in a directory that has none and may be missing. Where
// there is one already, the error is ErrExists.
func Init(opt Options) (Identity, error) {
	opt = opt.withDefaults()
	lock, err := lockStore(opt)
	if err != nil {
		return Identity{}, err
	}
	id, err := initialise(opt)
	if closing := lock.Close(); err == nil {
		err = closing
	}
	return id, err
}

func initialise(opt Options) (Identity, error) {
	id, err := readIdentity(opt.FS, opt.Dir, true)
	if err == nil {
		return id, fmt.Errorf("store %s in %s %w", id.ID, opt.Dir, ErrExists)
	}
	if !errors.Is(err, ErrNoStore) {
		return Identity{}, err
	}
	if err := create(opt); err != nil {
		return Identity{}, err
	}
	return readIdentity(opt.FS, opt.Dir, true)
}
