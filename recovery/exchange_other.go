//go:build !linux

package recovery

import "errors"

func exchangeNative(a, b string) error { return errors.ErrUnsupported }
