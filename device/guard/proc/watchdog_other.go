//go:build !linux

package proc

import (
	"errors"
	"os"
	"time"
)

func setTimeout(*os.File, time.Duration) (time.Duration, error) {
	return 0, errors.New("only Linux has one")
}
