package driver

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"agentsite/device"
)

// File is the YAML of a file that a driver reads: a secret, or the certificate of an authority. It is a name beside the
// configuration, or an absolute path. In a Config it is the absolute path, also in the guard's process. A device is
// opened again when the configuration is reloaded and the file has another content.
type File string

// Secret returns the content of the file, a key or a password. The error is an Offline fault without any of it.
func (f File) Secret() (string, error) {
	text, err := Secret(filepath.Dir(string(f)), filepath.Base(string(f)))
	if err != nil {
		return "", device.Faultf(device.Offline, "%w", err)
	}
	return text, nil
}

// Authorities returns the certificates of the file, in the form PEM. The error is an Offline fault.
func (f File) Authorities() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	text, _, err := readRegular(string(f), maxFile)
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("there is no certificate in the form PEM in it")
	}
	if err != nil {
		return nil, device.Faultf(device.Offline, "ca_file: %w", err)
	}
	return pool, nil
}

// Check returns why the file cannot be used: it is missing, is no secret of one line, or can be read by others, which
// only a certificate may.
func (f File) Check() error {
	if text, _, err := readRegular(string(f), maxFile); err == nil && bytes.HasPrefix(text, []byte("-----BEGIN CERTIFICATE")) {
		return nil
	}
	_, err := f.Secret()
	return err
}

// Digest returns a digest of the content, to notice changes; "" if it cannot be read.
func (f File) Digest() string {
	text, err := f.Secret()
	if err != nil {
		b, _, err := readRegular(string(f), maxFile)
		if err != nil {
			return ""
		}
		text = string(b)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// The limits of a secret and of a file with certificates, in bytes.
const (
	maxSecret = 4 << 10
	maxFile   = 64 << 10
)

// Secret reads a secret of one line, such as a key of another server. It reads the credential of
// that name from the service manager (systemd.exec(5), LoadCredential), or else a file in folder
// that other users cannot read.
func Secret(folder, name string) (string, error) {
	if handed := os.Getenv("CREDENTIALS_DIRECTORY"); handed != "" {
		text, _, err := readRegular(filepath.Join(handed, name), maxSecret)
		if !errors.Is(err, fs.ErrNotExist) {
			return oneLine(name, text, err)
		}
	}
	path := filepath.Join(folder, name)
	text, mode, err := readRegular(path, maxSecret)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no file %s with the secret: write it, and run chmod 600 %q (%w)", path, path,
			fs.ErrNotExist)
	case err == nil && runtime.GOOS != "windows" && mode.Perm()&0o077 != 0:
		return "", fmt.Errorf("%s can be read by others: run chmod 600 %q", path, path)
	}
	return oneLine(path, text, err)
}

// readRegular reads a file that another user may have written, if it is no link and not longer than limit bytes.
// It does not block on a pipe.
func readRegular(path string, limit int64) ([]byte, fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 { // as files of proc(5) are, of which a read may wait
		return nil, 0, fmt.Errorf("%s is not used, because it is empty or not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe meanwhile
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil || !os.SameFile(info, opened) {
		return nil, 0, errors.Join(err, fmt.Errorf("%s was changed meanwhile", path))
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if int64(len(text)) > limit {
		err = fmt.Errorf("%s is not used, because it is longer than %d bytes", path, limit)
	}
	return text, opened.Mode(), err
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
