//go:build !linux && !darwin

package host

import "errors"

// statVolume is not written for this system.
func statVolume(string) (volume, error) {
	return volume{}, errors.ErrUnsupported
}
