package update

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"agentsite/node/identity"
)

var online, offline = identity.New(), identity.New()

func keys() []identity.ID { return []identity.ID{online.ID(), offline.ID()} }

func release(version string, sequence uint64) Release {
	return Release{Version: version, Sequence: sequence, Target: "linux/arm64"}
}

// program is one whose bytes say which it is.
func program(version string) []byte {
	return bytes.Repeat([]byte("agentsite "+version+"\n"), 20)
}

func signedFile(t testing.TB, r Release, by ...identity.Key) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Sign(&b, r, program(r.Version), by...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// taken reads a whole update.
func taken(r io.Reader, keys []identity.ID) (program []byte, err error) {
	u, err := Read(r, keys)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = u.CopyTo(&b)
	return b.Bytes(), err
}

// TestKeys: either of the two signs, and nobody else.
func TestKeys(t *testing.T) {
	stranger := identity.New()
	for _, tt := range []struct {
		by   []identity.Key
		want string
	}{
		{[]identity.Key{online}, ""}, {[]identity.Key{offline}, ""}, {[]identity.Key{stranger, online}, ""},
		{[]identity.Key{stranger}, "not signed"}, {[]identity.Key{stranger, stranger}, "not signed"},
	} {
		got, err := taken(bytes.NewReader(signedFile(t, release("v2", 2), tt.by...)), keys())
		if tt.want == "" && (err != nil || !bytes.Equal(got, program("v2"))) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.by, err, tt.want)
		}
	}
	if _, err := taken(bytes.NewReader(signedFile(t, release("v2", 2), online)), nil); err == nil || !strings.Contains(err.Error(), "no release keys") {
		t.Errorf("without keys: %v", err)
	}
	// A signature for another purpose is none, and a key that is named without its signature.
	body, _ := codec.Encode(release("v2", 2))
	for _, s := range []signature{{online.ID(), online.Sign("grant", body)}, {online.ID(), stranger.Sign(purpose, body)}, {online.ID(), nil}} {
		if signed(seal{body, []signature{s}}, keys()) {
			t.Errorf("%v signs", s)
		}
	}
}

// TestDamage: a file that is cut off anywhere or altered in any byte is refused, and so is
// one with something behind it.
func TestDamage(t *testing.T) {
	whole := signedFile(t, release("v2", 2), online)
	for n := range whole {
		if got, err := taken(bytes.NewReader(whole[:n]), keys()); err == nil {
			t.Fatalf("%d of %d bytes are taken for %q", n, len(whole), got)
		}
		altered := bytes.Clone(whole)
		altered[n] ^= 1 << (n % 8)
		if _, err := taken(bytes.NewReader(altered), keys()); !errors.As(err, new(Refused)) {
			t.Fatalf("byte %d altered: %v", n, err)
		}
	}
	if _, err := taken(bytes.NewReader(append(whole, 0)), keys()); err == nil || !strings.Contains(err.Error(), "after its end") {
		t.Error(err)
	}
	if got, err := taken(iotest.OneByteReader(bytes.NewReader(whole)), keys()); err != nil || !bytes.Equal(got, program("v2")) {
		t.Error(err)
	}
	// A line that breaks is no damage: the same again may help.
	away := errors.New("the line is broken")
	for _, n := range []int{5, 100, len(whole) - 5} {
		_, err := taken(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(away)), keys())
		if !errors.Is(err, away) || errors.As(err, new(Refused)) {
			t.Errorf("broken at %d: %v", n, err)
		}
	}
	if _, err := taken(strings.NewReader(mark+"2\n"+strings.Repeat("x", 99)), keys()); err == nil || !strings.Contains(err.Error(), "format") {
		t.Error(err)
	}
}

// TestSignRefuses what Read would.
func TestSignRefuses(t *testing.T) {
	for _, r := range []Release{
		{Version: "", Sequence: 1, Target: "linux/arm64"}, {Version: "a b", Sequence: 1, Target: "linux/arm64"},
		{Version: "v1", Target: "linux/arm64"}, {Version: "v1", Sequence: 1, Target: "linux"}, {Version: "v1", Sequence: 1, Target: "linux/arm/66"},
	} {
		if err := Sign(io.Discard, r, []byte("x"), online); err == nil {
			t.Errorf("%+v is signed", r)
		}
	}
	if Sign(io.Discard, release("v1", 1), nil, online) == nil || Sign(io.Discard, release("v1", 1), []byte("x")) == nil {
		t.Error("nothing, or by nobody, is signed")
	}
}

// site is a folder of programs with a package's program.
func site(t testing.TB) Programs {
	t.Helper()
	dir := t.TempDir()
	p := Programs{Dir: filepath.Join(dir, "updates"), Package: filepath.Join(dir, "packaged")}
	for _, err := range []error{os.Mkdir(p.Dir, 0o755), os.Mkdir(p.path(inboxName), 0o755), os.WriteFile(p.Package, program("v1"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	settle(t, p)
	return p
}

func rules(own uint64) Rules { return Rules{Keys: keys(), Target: "linux/arm64", Sequence: own} }

// settle is the start of the service as the package of sequence 1 has it.
func settle(t testing.TB, p Programs) []string {
	t.Helper()
	did, err := p.Settle(1)
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// runs is which program the link leads to.
func runs(t testing.TB, p Programs) string {
	t.Helper()
	text, err := os.ReadFile(p.path(linkName))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v2", "v3"} {
		if bytes.Equal(text, program(version)) {
			return version
		}
	}
	t.Fatalf("%.40q runs", text)
	return ""
}

// try stages an update and starts the service.
func try(t testing.TB, p Programs, version string, sequence uint64) {
	t.Helper()
	now, err := p.State()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stage(bytes.NewReader(signedFile(t, release(version, sequence), online)), rules(max(1, now.InUse.Sequence))); err != nil {
		t.Fatal(err)
	}
	settle(t, p)
	if got, err := p.Install(rules(1)); err != nil || got == nil || got.Version != version {
		t.Fatal(got, err)
	}
	if got := runs(t, p); got != version {
		t.Fatalf("%s runs", got)
	}
}

// TestTrial: a program that proves itself stays; otherwise it is gone with the next start.
func TestTrial(t *testing.T) {
	p := site(t)
	if got, err := p.Install(rules(1)); got != nil || err != nil || runs(t, p) != "v1" {
		t.Fatal(got, err, runs(t, p))
	}
	try(t, p, "v2", 2)
	settle(t, p)
	s, _ := p.State()
	if runs(t, p) != "v1" || s.Failed.Version != "v2" || s.Floor != 0 || s.Trial {
		t.Fatalf("%s runs: %+v", runs(t, p), s)
	}
	if got, err := p.Install(rules(1)); got != nil || err != nil {
		t.Error("it is tried again:", got, err)
	}

	try(t, p, "v2", 2) // its owner may
	if err := errors.Join(p.Prove(2), p.Prove(2)); err != nil {
		t.Fatal(err)
	}
	settle(t, p)
	settle(t, p)
	s, _ = p.State()
	if runs(t, p) != "v2" || s.Floor != 2 || s.Trial {
		t.Fatalf("%s runs: %+v", runs(t, p), s)
	}

	try(t, p, "v3", 3)
	settle(t, p)
	if runs(t, p) != "v2" {
		t.Fatalf("%s runs", runs(t, p))
	}
	if _, err := os.Stat(p.path("3")); err == nil {
		t.Error("what failed is kept")
	}
	try(t, p, "v3", 3)
	p.Prove(3)
	settle(t, p)
	if _, err := os.Stat(p.path("2")); err != nil || runs(t, p) != "v3" {
		t.Errorf("%s runs; the one before is not kept: %v", runs(t, p), err)
	}

	t.Log("a newer package")
	if did, err := p.Settle(4); err != nil || runs(t, p) != "v1" {
		t.Errorf("%v %v, and %s runs", did, err, runs(t, p))
	}
	if s, _ := p.State(); s.Floor != 3 {
		t.Errorf("the floor went to %d", s.Floor)
	}
}

// TestOlder: nothing older than what ever was well is taken, nor what is for another board.
func TestOlder(t *testing.T) {
	p := site(t)
	try(t, p, "v3", 3)
	p.Prove(3)
	settle(t, p)
	if err := p.link(Program{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		r    Release
		want string
	}{
		{release("v2", 2), "older"}, {release("v3", 3), "here already"},
		{Release{Version: "v4", Sequence: 4, Target: "linux/arm/6"}, "this board runs linux/arm64"},
	} {
		file := signedFile(t, tt.r, online)
		if _, err := p.Stage(bytes.NewReader(file), rules(1)); !errors.As(err, new(Refused)) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s is staged: %v", tt.r.Version, err)
		}
		// A file put there by other means is refused, too.
		if err := os.WriteFile(p.path(inboxName, waitName), file, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Install(rules(1)); !errors.As(err, new(Refused)) {
			t.Errorf("%s is installed: %v", tt.r.Version, err)
		}
		if p.Waits() {
			t.Error("what was refused waits still")
		}
	}
}

// TestDamaged: a program that is not any more what was installed is not started, and a
// state that cannot be read lets the package's start.
func TestDamaged(t *testing.T) {
	p := updated(t)
	spoil := func(name string) {
		t.Helper()
		if err := os.WriteFile(p.path(name, linkName), append(program("v9"), 0), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	spoil("3")
	if did := settle(t, p); runs(t, p) != "v2" || !strings.Contains(strings.Join(did, " "), "v3 is damaged") {
		t.Errorf("%s runs: %q", runs(t, p), did)
	}
	spoil("2")
	if settle(t, p); runs(t, p) != "v1" {
		t.Errorf("%s runs", runs(t, p))
	}
	for _, text := range []string{"", "{", `{"form":2}`, `{"form":1,"more":1}`} {
		p := site(t)
		if err := os.WriteFile(p.path(stateName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Settle(1); err == nil || runs(t, p) != "v1" {
			t.Errorf("%q: %v, and %s runs", text, err, runs(t, p))
		}
	}
}

// TestInbox: no file of the service in the inbox makes the superuser do anything.
func TestInbox(t *testing.T) {
	p := site(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, signedFile(t, release("v2", 2), online), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(string) error{
		"a link":   func(to string) error { return os.Symlink(secret, to) },
		"a folder": func(to string) error { return os.Mkdir(to, 0o755) },
	} {
		for _, at := range []string{waitName, provenName, waitName + ".new"} {
			if err := put(p.path(inboxName, at)); err != nil {
				t.Skip(err)
			}
		}
		if _, err := p.Install(rules(1)); err == nil || runs(t, p) != "v1" {
			t.Errorf("%s: %v, and %s runs", name, err, runs(t, p))
		}
		if u, err := p.Check(bytes.NewReader(signedFile(t, release("v3", 3), online)), rules(1)); err != nil {
			t.Fatal(err)
		} else {
			p.stageIn(p.path(inboxName), u)
		}
		if b, err := os.ReadFile(secret); err != nil || !bytes.Equal(b, signedFile(t, release("v2", 2), online)) {
			t.Errorf("%s: another file was written: %v", name, err)
		}
		for _, at := range []string{waitName, provenName, waitName + ".new"} {
			os.RemoveAll(p.path(inboxName, at))
		}
	}
}

// TestBlockedInbox: nothing that the service's user puts into the inbox blocks the superuser's update,
// or replaces it.
func TestBlockedInbox(t *testing.T) {
	for name, put := range map[string]func(string) error{
		"a folder with a file": func(to string) error { return os.MkdirAll(filepath.Join(to, "below", "it"), 0o755) },
		"a damaged update":     func(to string) error { return os.WriteFile(to, []byte("update"), 0o600) },
		"an older update":      func(to string) error { return os.WriteFile(to, signedFile(t, release("v3", 1), online), 0o600) },
		"a link to nothing":    func(to string) error { return os.Symlink("nothing", to) },
	} {
		p := site(t)
		for _, at := range []string{waitName, waitName + ".new", provenName, provenName + ".new"} {
			if err := put(p.path(inboxName, at)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Stage(bytes.NewReader(signedFile(t, release("v2", 2), online)), rules(1)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := p.Install(rules(1)); err != nil || got == nil || runs(t, p) != "v2" {
			t.Errorf("%s: %v, and %s runs", name, err, runs(t, p))
			continue
		}
		if err := p.Prove(2); err != nil {
			t.Errorf("%s: it cannot prove itself: %v", name, err)
		}
		if settle(t, p); runs(t, p) != "v2" {
			t.Errorf("%s: %s runs afterwards", name, runs(t, p))
		}
		p.Install(rules(2)) // refuses what is in the inbox, and frees the name
		u, err := p.Check(bytes.NewReader(signedFile(t, release("v3", 3), online)), rules(2))
		if err == nil {
			err = p.stageIn(p.path(inboxName), u)
		}
		if err != nil {
			t.Errorf("%s: the service cannot stage an update: %v", name, err)
		}
	}
}

func TestProgramsOf(t *testing.T) {
	for path, want := range map[string]uint64{"/var/lib/x/12/agentsite": 12, "/usr/lib/agentsite/agentsite": 0, "/var/lib/x/12/other": 0, "agentsite": 0, "": 0} {
		if p, n := ProgramsOf(path); n != want || n > 0 && p.Dir != "/var/lib/x" {
			t.Errorf("%s: %d in %s", path, n, p.Dir)
		}
	}
}

// FuzzUpdate: whatever the bytes are, nothing is taken that is not the whole of what was
// signed.
func FuzzUpdate(f *testing.F) {
	key := identity.New()
	var b bytes.Buffer
	Sign(&b, release("v2", 2), program("v2"), key)
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:60])
	f.Fuzz(func(t *testing.T, file []byte) {
		if got, err := taken(bytes.NewReader(file), []identity.ID{key.ID()}); err == nil && sha256.Sum256(got) != sha256.Sum256(program("v2")) {
			t.Errorf("%q is taken", got)
		}
	})
}

// FuzzSeal reads what is signed, as if all of it were.
func FuzzSeal(f *testing.F) {
	r := release("v2", 2)
	r.Size = 1
	b, _ := codec.Encode(r)
	f.Add(b)
	f.Fuzz(func(t *testing.T, body []byte) {
		sealed, _ := codec.Encode(seal{body, []signature{{online.ID(), online.Sign(purpose, body)}}})
		r, err := open(sealed, keys())
		if err != nil {
			return
		}
		if again, err := codec.Encode(r); err != nil || !bytes.Equal(again, body) || r.check() != nil {
			t.Errorf("%x is %+v", body, r)
		}
	})
}
