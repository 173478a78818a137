package state

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Token returns the folder's token and creates it where there is none. The caller holds the lock.
// The first start, before any process has written to the lock, also arms the outputs, unless a stop
// has raised the flag. Later, a folder without the armed file means stopped, also with a new token.
func (f Folder) Token() (string, error) {
	file := f.Path(TokenFile)
	b, err := os.ReadFile(file)
	if err == nil {
		info, err := os.Stat(file)
		if err == nil && OthersCanRead(info.Mode()) {
			return "", fmt.Errorf("others can read %s: run chmod 600 %[1]s, or delete it for a new one", file)
		}
		if token := strings.TrimSpace(string(b)); IsToken(token) {
			return token, err
		}
		return "", Mistakef("%s has no token of 64 hexadecimal digits: delete it, and the next start creates a new one", file)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", f.Unusable(err)
	}
	by, err := os.ReadFile(f.Path(lockName))
	if err != nil {
		return "", f.Unusable(err)
	}
	if len(by) == 0 {
		if err := f.Latch().Arm(); err != nil {
			return "", f.Unusable(err)
		}
	}
	var secret [32]byte
	rand.Read(secret[:])
	token := hex.EncodeToString(secret[:])
	if err := WriteAtomic(file, []byte(token+"\n"), 0o600); err != nil {
		return "", f.Unusable(err)
	}
	return token, nil
}

// IsToken reports whether s has the form of a token: 64 hexadecimal digits.
func IsToken(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}
