package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxSecret bounds a secret, in bytes.
const maxSecret = 4 << 10

// Secret reads a secret of one line, such as a key of another server. It reads the credential of
// that name from the service manager (systemd.exec(5), LoadCredential), or else a file in folder
// that other users cannot read.
func Secret(folder, name string) (string, error) {
	if handed := os.Getenv("CREDENTIALS_DIRECTORY"); handed != "" {
		if text, err := ReadUntrusted(filepath.Join(handed, name), maxSecret); text != nil || err != nil {
			return oneLine(name, text, err)
		}
	}
	path := filepath.Join(folder, name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no file %s with the secret: write it, and run chmod 600 %s", path, ShellQuote(path))
	case err != nil:
		return "", err
	case OthersCanRead(info.Mode()):
		return "", fmt.Errorf("%s can be read by others: chmod 600 %s", path, ShellQuote(path))
	}
	text, err := ReadUntrusted(path, maxSecret)
	if text == nil && err == nil {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return oneLine(path, text, err)
}

func oneLine(path string, text []byte, err error) (string, error) {
	secret := strings.TrimRight(string(text), "\r\n")
	if err == nil && (secret == "" || strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r > '~' })) {
		err = fmt.Errorf("%s is not a secret of one line of ASCII", path)
	}
	if err != nil {
		return "", err
	}
	return secret, nil
}
