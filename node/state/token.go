package state

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
)

// Token returns the folder's token and creates it where there is none. The caller holds the lock.
// The first start, before any process has written to the lock, also arms the outputs, unless a stop
// has raised the flag. Later, a folder without the armed file means stopped, also with a new token.
func (f Folder) Token() (string, error) {
	file := f.Path(TokenFile)
	if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && OthersCanRead(info.Mode()) {
		return "", Mistakef("others can read %s: run chmod 600 %[1]s, or delete it for a new one", file)
	}
	b, err := f.Read(TokenFile)
	if err != nil {
		return "", f.Unusable(err)
	}
	if b != nil {
		if token := strings.TrimSpace(string(b)); IsToken(token) {
			return token, nil
		}
		return "", Mistakef("%s has no token of 64 hexadecimal digits: delete it, and the next start creates a new one", file)
	}
	by, err := f.Read(lockName)
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
