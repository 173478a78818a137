package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxControl limits the description of a package, in bytes.
const maxControl = 64 << 10

// deb is a package in the pool.
type deb struct {
	version, arch string
	stanza        string // in the index
}

// writeRepository writes the indexes of the suites stable, without pre-releases, and beta, as of
// https://wiki.debian.org/DebianRepository/Format. apt refuses them after the days.
func writeRepository(keyFile, folder string, date time.Time, days int) error {
	key, err := readKey(keyFile)
	if err != nil {
		return err
	}
	debs, err := readPool(folder)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(folder, "dists")); err != nil {
		return err
	}
	for _, suite := range []string{"stable", "beta"} {
		var of []deb
		for _, d := range debs {
			if suite == "beta" || !strings.Contains(d.version, "~") {
				of = append(of, d)
			}
		}
		if len(of) == 0 {
			continue
		}
		dir := filepath.Join(folder, "dists", suite)
		release, err := writeIndexes(dir, suite, of, date, days)
		if err != nil {
			return err
		}
		inline, err := signInline(key, release, date)
		if err != nil {
			return err
		}
		detached, err := signDetached(key, release, date)
		if err != nil {
			return err
		}
		for name, text := range map[string][]byte{"Release": release, "InRelease": inline, "Release.gpg": detached} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeIndexes writes the lists of packages of a suite, by their hashes too, so that a client that has the former
// Release finds them while the new one is uploaded. It returns the text of Release.
func writeIndexes(dir, suite string, debs []deb, date time.Time, days int) ([]byte, error) {
	byArch := make(map[string]string)
	var archs []string
	for _, d := range debs {
		if byArch[d.arch] == "" {
			archs = append(archs, d.arch)
		}
		byArch[d.arch] += d.stanza + "\n"
	}
	slices.Sort(archs)
	var sums strings.Builder
	for _, arch := range archs {
		plain := []byte(byArch[arch])
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(plain); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		for name, text := range map[string][]byte{"Packages": plain, "Packages.gz": packed.Bytes()} {
			sum := fmt.Sprintf("%x", sha256.Sum256(text))
			to := filepath.Join(dir, "main", "binary-"+arch)
			hashed := filepath.Join(to, "by-hash", "SHA256")
			if err := errors.Join(os.MkdirAll(hashed, 0o755), os.WriteFile(filepath.Join(to, name), text, 0o644),
				os.WriteFile(filepath.Join(hashed, sum), text, 0o644)); err != nil {
				return nil, err
			}
		}
		for _, name := range []string{"Packages", "Packages.gz"} {
			text := plain
			if name != "Packages" {
				text = packed.Bytes()
			}
			fmt.Fprintf(&sums, " %x %d main/binary-%s/%s\n", sha256.Sum256(text), len(text), arch, name)
		}
	}
	const form = "Mon, 02 Jan 2006 15:04:05 UTC"
	return fmt.Appendf(nil, "Origin: agentsite\nLabel: agentsite\nSuite: %s\nCodename: %s\n"+
		"Date: %s\nValid-Until: %s\nAcquire-By-Hash: yes\n"+
		"Architectures: %s\nComponents: main\nDescription: agentsite, %s releases\nSHA256:\n%s",
		suite, suite, date.Format(form), date.AddDate(0, 0, days).Format(form),
		strings.Join(archs, " "), suite, &sums), nil
}

// readPool reads the packages below folder/pool, sorted by their paths.
func readPool(folder string) (debs []deb, err error) {
	seen := make(map[string]string)
	err = filepath.WalkDir(filepath.Join(folder, "pool"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".deb" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		one, err := readDeb(text, filepath.ToSlash(name))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if other := seen[one.version+" "+one.arch]; other != "" {
			return fmt.Errorf("%s and %s are both %s for %s: keep one", other, path, one.version, one.arch)
		}
		seen[one.version+" "+one.arch] = path
		debs = append(debs, one)
		return nil
	})
	if err == nil && len(debs) == 0 {
		err = fmt.Errorf("there is no package below %s/pool", folder)
	}
	return debs, err
}

var (
	fieldVersion = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^Version: ([0-9][A-Za-z0-9.+~]*)$`)
	})
	fieldArch = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^Architecture: ([a-z0-9]+)$`) })
)

// readDeb reads what an index says of a package.
func readDeb(text []byte, name string) (deb, error) {
	control, err := readControl(text)
	if err != nil {
		return deb{}, err
	}
	control = strings.TrimSpace(control) + "\n"
	version, arch := fieldVersion().FindStringSubmatch(control), fieldArch().FindStringSubmatch(control)
	if version == nil || arch == nil || strings.Contains(control, "\n\n") {
		return deb{}, errors.New("its control file has no version or architecture, or an empty line")
	}
	stanza := fmt.Sprintf("%sFilename: %s\nSize: %d\nSHA256: %x\n", control, name, len(text), sha256.Sum256(text))
	return deb{version[1], arch[1], stanza}, nil
}

// readControl returns the control file of a package, which is an ar archive (deb(5)) with a
// control.tar.gz, as nfpm makes it.
func readControl(text []byte) (string, error) {
	const magic, head = "!<arch>\n", 60
	rest, ok := bytes.CutPrefix(text, []byte(magic))
	if !ok {
		return "", errors.New("it is no Debian package")
	}
	for len(rest) >= head {
		name := strings.TrimRight(string(rest[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || size < 0 || size > len(rest)-head {
			break
		}
		if name == "control.tar.gz" {
			return readMember(rest[head : head+size])
		}
		rest = rest[min(len(rest), head+size+size%2):]
	}
	return "", errors.New("it has no control.tar.gz, or is damaged")
}

func readMember(packed []byte) (string, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err != nil {
			return "", fmt.Errorf("its control.tar.gz has no file control: %w", err)
		}
		if filepath.Base(h.Name) == "control" {
			text, err := io.ReadAll(io.LimitReader(t, maxControl+1))
			if err == nil && len(text) > maxControl {
				err = errors.New("its control file is too long")
			}
			return string(text), err
		}
	}
}
