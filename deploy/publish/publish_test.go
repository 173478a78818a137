package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"

	"agentsite/node/identity"
)

var date = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func keyFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, identity.New().PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// makeDeb returns a package with a control file only.
func makeDeb(t testing.TB, version, arch string) []byte {
	t.Helper()
	control := fmt.Sprintf("Package: agentsite\nVersion: %s\nArchitecture: %s\nDescription: a board\n .\n more\n",
		version, arch)
	plain, err := writeTar([]file{{"./control", 0o644, 0, []byte(control)}}, date)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(plain)
	z.Close()
	b := []byte("!<arch>\n")
	for _, member := range []struct {
		name string
		text []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", packed.Bytes()}} {
		b = fmt.Appendf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, 0, 0, 0, "100644", len(member.text))
		b = append(b, member.text...)
		if len(member.text)%2 == 1 {
			b = append(b, '\n')
		}
	}
	return b
}

func makePool(t testing.TB, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	pool := filepath.Join(dir, "pool")
	if err := os.Mkdir(pool, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		for _, arch := range []string{"arm64", "armhf"} {
			if err := os.WriteFile(filepath.Join(pool, v+"_"+arch+".deb"), makeDeb(t, v, arch), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestRepository: all versions are in the index, pre-releases in beta only; the signed file has the hashes of the files
// that it lists, and an expiry. Made again, it has the same bytes.
func TestRepository(t *testing.T) {
	key := keyFile(t)
	dirs := []string{makePool(t, "1.0.0", "1.1.0~beta.1"), makePool(t, "1.0.0", "1.1.0~beta.1")}
	for _, dir := range dirs {
		if err := writeRepository(key, dir, date, 90); err != nil {
			t.Fatal(err)
		}
	}
	e, err := readKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for suite, count := range map[string]int{"stable": 1, "beta": 2} {
		dir := filepath.Join(dirs[0], "dists", suite)
		inline, err := os.ReadFile(filepath.Join(dir, "InRelease"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(filepath.Join(dirs[1], "dists", suite, "InRelease"))
		if err != nil || !bytes.Equal(inline, again) {
			t.Errorf("made again, InRelease differs: %v", err)
		}
		block, _ := clearsign.Decode(inline)
		if block == nil {
			t.Fatalf("%s", inline)
		}
		if _, err := block.VerifySignature(openpgp.EntityList{e}, config(date)); err != nil {
			t.Error(err)
		}
		release, err := os.ReadFile(filepath.Join(dir, "Release"))
		if err != nil || !bytes.Equal(block.Plaintext, release) ||
			!strings.Contains(string(release), "\nValid-Until: Fri, 26 Feb 2027 12:00:00 UTC\n") {
			t.Errorf("%v\n%s", err, release)
		}
		listed := 0
		for line := range strings.Lines(string(release)) {
			var sum, name string
			var size int
			if n, _ := fmt.Sscanf(line, " %64s %d %s", &sum, &size, &name); n != 3 {
				continue
			}
			listed++
			text, err := os.ReadFile(filepath.Join(dir, name))
			hashed, err2 := os.ReadFile(filepath.Join(dir, filepath.Dir(name), "by-hash", "SHA256", sum))
			if err != nil || err2 != nil || size != len(text) || fmt.Sprintf("%x", sha256.Sum256(text)) != sum ||
				!bytes.Equal(text, hashed) {
				t.Errorf("%s: %v %v", line, err, err2)
			}
			if !strings.HasSuffix(name, ".gz") && strings.Count(string(text), "\nFilename: pool/") != count {
				t.Errorf("%s of %s:\n%s", name, suite, text)
			}
		}
		if listed != 4 {
			t.Errorf("%s lists %d files", suite, listed)
		}
	}
}

// TestRepositoryRefused: neither an empty pool, a damaged package, nor one version twice.
func TestRepositoryRefused(t *testing.T) {
	key, twice := keyFile(t), makePool(t, "1.0.0")
	if err := os.WriteFile(filepath.Join(twice, "pool", "x.deb"), makeDeb(t, "1.0.0", "arm64"), 0o644); err != nil {
		t.Fatal(err)
	}
	damaged := makePool(t)
	cut := makeDeb(t, "1.0.0", "arm64")[:100]
	if err := os.WriteFile(filepath.Join(damaged, "pool", "x.deb"), cut, 0o644); err != nil {
		t.Fatal(err)
	}
	for what, dir := range map[string]string{"no package": makePool(t), "twice": twice, "damaged": damaged} {
		if err := writeRepository(key, dir, date, 90); err == nil {
			t.Errorf("%s: it is written", what)
		}
	}
}

// TestCertificates: a key has always the same certificate, and several stand in one file.
func TestCertificates(t *testing.T) {
	key, other := keyFile(t), keyFile(t)
	var one, two, both bytes.Buffer
	if err := printCertificates(&one, key, nil); err != nil {
		t.Fatal(err)
	}
	if err := printCertificates(&two, key, nil); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("%v\n%s\n%s", err, one.Bytes(), two.Bytes())
	}
	file := filepath.Join(t.TempDir(), "key.asc")
	if err := os.WriteFile(file, one.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := printCertificates(&both, other, []string{file}); err != nil {
		t.Fatal(err)
	}
	if all, err := openpgp.ReadArmoredKeyRing(&both); err != nil || len(all) != 2 || all[0].PrivateKey != nil ||
		len(all[0].Subkeys) != 0 {
		t.Errorf("%v: %v", err, all)
	}
}

// TestImage: the layout is complete, each blob has its hash and size, and the program is in the layer.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	var texts [2][]byte
	for n := range texts {
		to := filepath.Join(dir, "image.tar")
		programs := []string{"linux/amd64=" + program, "linux/arm/6=" + program}
		if err := writeImage(to, "1.0.0", "io.github.someone/agentsite", programs, date); err != nil {
			t.Fatal(err)
		}
		texts[n], _ = os.ReadFile(to)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("made again, it differs")
	}
	files := untar(t, texts[0])
	var top manifest
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("%v: %s", err, files["index.json"])
	}
	blob := func(d descriptor) []byte {
		t.Helper()
		sum := strings.TrimPrefix(d.Digest, "sha256:")
		text := files["blobs/sha256/"+sum]
		if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != sum || len(text) != d.Size {
			t.Errorf("%+v has %d bytes", d, len(text))
		}
		return text
	}
	decode := func(d descriptor, v any) {
		t.Helper()
		if err := json.Unmarshal(blob(d), v); err != nil {
			t.Fatal(err)
		}
	}
	var index manifest
	decode(top.Manifests[0], &index)
	var found []platform
	for _, d := range index.Manifests {
		found = append(found, *d.Platform)
		var m manifest
		decode(d, &m)
		var c imageConfig
		decode(*m.Config, &c)
		if c.platform != *d.Platform || c.Config.User != "65532:65532" || len(m.Layers) != 1 {
			t.Errorf("%+v", c)
		}
		z, err := gzip.NewReader(bytes.NewReader(blob(m.Layers[0])))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil || fmt.Sprintf("sha256:%x", sha256.Sum256(plain)) != c.RootFS.DiffIDs[0] {
			t.Error(err, c.RootFS)
		}
		inside := untar(t, plain)
		roots := bytes.Count(inside["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN"))
		if string(inside["usr/bin/agentsite"]) != "program" || roots < 50 ||
			len(inside["usr/share/zoneinfo/Europe/Berlin"]) == 0 {
			t.Error("the layer lacks the program, the authorities or the time zones")
		}
	}
	if len(found) != 2 || found[1] != (platform{"arm", "linux", "v6"}) {
		t.Errorf("%+v", found)
	}
}

func untar(t testing.TB, text []byte) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzDeb: no package makes the reader crash, or brings an entry with an empty line, which would begin another.
func FuzzDeb(f *testing.F) {
	f.Add(makeDeb(f, "1.0.0", "arm64"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, err := readDeb(text, "pool/x.deb"); err == nil && strings.Contains(d.stanza, "\n\n") {
			t.Errorf("%q", d.stanza)
		}
	})
}
