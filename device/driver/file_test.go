package driver

import (
	"agentsite/device"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestSecret: a secret is read where nobody else can read it, and what the service manager hands over
// comes first.
func TestSecret(t *testing.T) {
	folder, handed := t.TempDir(), t.TempDir()
	write := func(folder, name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(folder, "good", "sk-1\n", 0o600)
	write(folder, "open", "sk-2\n", 0o644)
	write(folder, "lines", "sk-3\nsk-4\n", 0o600)
	write(folder, "empty", "\n", 0o600)
	write(folder, "blank", "", 0o600)
	write(handed, "both", "sk-5", 0o440)
	write(folder, "both", "sk-6", 0o600)
	check := func(name, want string) {
		t.Helper()
		if got, err := Secret(folder, name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
	check("good", "sk-1")
	check("lines", "")
	check("empty", "")
	check("none", "")
	check("blank", "")
	if runtime.GOOS != "windows" {
		check("open", "")
	}
	check("both", "sk-6")
	t.Setenv("CREDENTIALS_DIRECTORY", handed)
	check("both", "sk-5")
	check("good", "sk-1")
}

// TestFile: a file is a fault that does not tell its content, and its digest changes with the content only.
func TestFile(t *testing.T) {
	f := File(filepath.Join(t.TempDir(), "kitchen.key"))
	if _, err := f.Secret(); device.AsFault(err).Kind != device.Offline || !errors.Is(err, fs.ErrNotExist) || f.Digest() != "" {
		t.Errorf("no file: %v", err)
	}
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(string(f), []byte(text), mode), os.Chmod(string(f), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("one", 0o600)
	one := f.Digest()
	write("one\n", 0o600)
	if again := f.Digest(); one == "" || again != one {
		t.Error("the digest is not that of the secret")
	}
	write("two", 0o600)
	if f.Digest() == one {
		t.Error("the digest does not change")
	}
	write("a\x01secret", 0o600)
	if _, err := f.Secret(); device.AsFault(err).Kind != device.Offline || strings.Contains(err.Error(), "secret\"") || strings.Contains(err.Error(), "\x01") {
		t.Error(err)
	}
	const certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
	write(certificate, 0o644)
	if before := f.Digest(); f.Check() != nil || before == "" {
		t.Errorf("a certificate is no secret: %v", f.Check())
	} else if write(certificate+certificate, 0o644); f.Digest() == before {
		t.Error("another certificate is not noticed")
	}
	write("two\nlines\n", 0o600)
	if f.Check() == nil {
		t.Error("a secret has one line")
	}
	write(strings.Repeat("x", maxSecret+1), 0o600)
	if _, err := f.Secret(); err == nil || strings.Contains(err.Error(), "xx") {
		t.Error(err)
	}
}

// TestFileOfProc: a file of the kernel is not read, because some of them wait for the next event.
func TestFileOfProc(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux has proc(5)")
	}
	if _, err := File("/proc/self/comm").Secret(); err == nil || File("/proc/self/comm").Digest() != "" {
		t.Error("it was read")
	}
}
