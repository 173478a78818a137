package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentsite/node/identity"
	"agentsite/node/update"
)

const slotSize = 64 << 10

// board is a card as files, which the firmware reads and the system writes.
type board struct {
	t   *testing.T
	dir string
	key identity.Key
	// fails, if not nil, makes writes to a slot fail after that many bytes.
	fails *int
}

func TestMain(m *testing.M) {
	os.Stderr, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0) // the board's log
	os.Exit(m.Run())
}

func newBoard(t *testing.T) *board {
	b := &board{t: t, dir: t.TempDir(), key: identity.New()}
	for _, folder := range []string{"boot", "updates/inbox"} {
		if err := os.MkdirAll(filepath.Join(b.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.write("boot/autoboot.txt", []byte(autobootText(firstSlot)))
	b.write("slot2", b.content(1))
	b.write("slot3", make([]byte, slotSize))
	return b
}

func (b *board) path(name string) string { return filepath.Join(b.dir, name) }

func (b *board) write(name string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), content, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *board) read(name string) []byte {
	b.t.Helper()
	content, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return content
}

// content returns the beginning of a slot with that version.
func (b *board) content(sequence int) []byte {
	return bytes.Repeat([]byte("version "+strconv.Itoa(sequence)+"\n"), slotSize/20)
}

// update returns a signed update.
func (b *board) update(sequence int, by identity.Key) []byte {
	b.t.Helper()
	var out bytes.Buffer
	r := update.Release{Version: strconv.Itoa(sequence), Sequence: uint64(sequence), Target: target}
	if err := update.Sign(&out, r, b.content(sequence), by); err != nil {
		b.t.Fatal(err)
	}
	return out.Bytes()
}

// power boots the board as its firmware does, and returns the running slots. With tryboot it
// boots the other slot, once.
func (b *board) power(tryboot bool) *slots {
	b.t.Helper()
	n := firstSlot
	if text := string(b.read("boot/autoboot.txt")); text != autobootText(n) {
		n = otherSlot
		if text != autobootText(n) {
			b.t.Fatalf("no firmware understands %q", text)
		}
	}
	if tryboot {
		n = firstSlot + otherSlot - n
	}
	word := strings.Fields(string(b.read("slot" + strconv.Itoa(n))[:20]))
	if len(word) < 2 || word[0] != "version" {
		if tryboot {
			return b.power(false) // the slot is not bootable, or hangs
		}
		b.t.Fatalf("slot %d has nothing to start", n)
	}
	sequence, _ := strconv.ParseUint(word[1], 10, 64)
	if !bytes.HasPrefix(b.read("slot"+strconv.Itoa(n)), b.content(int(sequence))) {
		if tryboot {
			return b.power(false)
		}
		b.t.Fatalf("slot %d has half a version", n)
	}
	version = word[1]
	s := &slots{
		boot: b.path("boot"), folder: b.path("updates"),
		open: func(n int) (disk, error) {
			f, err := os.OpenFile(b.path("slot"+strconv.Itoa(n)), os.O_RDWR, 0)
			return &failing{f, b.fails}, err
		},
		rules: update.Rules{Keys: []identity.ID{b.key.ID()}, Target: target, Sequence: sequence},
	}
	if err := s.read(); err != nil {
		b.t.Error(err)
	}
	s.endTrial()
	return s
}

func TestAnUpdateIsTriedAndKept(t *testing.T) {
	b := newBoard(t)
	s := b.power(false)
	if s.onTrial() || s.installWaiting() {
		t.Fatal("there is nothing to take")
	}
	s.confirm()
	b.write("boot/"+cardFile, b.update(2, b.key))
	if !s.installWaiting() || s.onTrial() {
		t.Fatal("it is not taken")
	}
	s = b.power(true)
	if s.rules.Sequence != 2 || !s.onTrial() {
		t.Fatal("it is not tried")
	}
	b.write("updates/"+inboxFile, b.update(3, b.key))
	if s.installWaiting() {
		t.Fatal("another is taken while one is on trial")
	}
	if again := b.power(false); again.rules.Sequence != 1 {
		t.Fatal("it is started before it was well")
	}
}

func TestAWellOneStays(t *testing.T) {
	b := newBoard(t)
	s := b.power(false)
	b.write("updates/"+inboxFile, b.update(2, b.key))
	s.installWaiting()
	s = b.power(true)
	s.confirm()
	s.confirm()
	for range 2 {
		if s = b.power(false); s.rules.Sequence != 2 || s.onTrial() || s.state.Floor != 2 {
			t.Fatalf("%+v", s.state)
		}
	}
	// The next update goes to the first slot.
	b.write("updates/"+inboxFile, b.update(3, b.key))
	if !s.installWaiting() || b.power(true).rules.Sequence != 3 {
		t.Error("there is no third")
	}
}

func TestOneThatIsNotWellIsGone(t *testing.T) {
	b := newBoard(t)
	s := b.power(false)
	b.write("updates/"+inboxFile, b.update(2, b.key))
	s.installWaiting()
	b.power(true).reject()
	s = b.power(false)
	if s.rules.Sequence != 1 || s.onTrial() || s.state.Failed.Sequence != 2 {
		t.Fatalf("%+v", s.state)
	}
	b.write("updates/"+inboxFile, b.update(2, b.key))
	if s.installWaiting() {
		t.Error("it is tried again")
	}
	b.write("updates/"+inboxFile, b.update(3, b.key))
	if !s.installWaiting() {
		t.Error("a newer one is not tried")
	}
}

// TestRefused: an update that is not signed, incomplete, not newer or not for the image
// changes nothing.
func TestRefused(t *testing.T) {
	b := newBoard(t)
	good := b.update(2, b.key)
	other := func(r update.Release) []byte {
		var out bytes.Buffer
		if err := update.Sign(&out, r, b.content(2), b.key); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	altered := bytes.Clone(good)
	altered[len(altered)-1] ^= 1
	for name, text := range map[string][]byte{
		"nobody's": b.update(2, identity.New()), "the same": b.update(1, b.key), "empty": nil,
		"cut": good[:len(good)-1], "altered": altered, "longer": append(bytes.Clone(good), 0),
		"a program": other(update.Release{Version: "2", Sequence: 2, Target: "linux/arm64"}),
	} {
		b.write("boot/"+cardFile, text)
		s := b.power(false)
		if s.installWaiting() || s.onTrial() {
			t.Errorf("%s is taken", name)
		}
		if _, err := os.Stat(b.path("boot/" + cardFile)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s waits on", name)
		}
		if b.power(true).rules.Sequence != 1 {
			t.Errorf("%s is started", name)
		}
	}
}

// TestCut: the power fails at 200 points of an update. The old version runs, no other is
// bootable, and the update is installed later.
func TestCut(t *testing.T) {
	const points = 200
	for i := range points {
		b := newBoard(t)
		s := b.power(false)
		b.write("updates/"+inboxFile, b.update(2, b.key))
		left := i * (sectorSize + len(b.content(2))) / points
		b.fails = &left
		if s.installWaiting() {
			t.Fatalf("cut at %d, it is taken", i)
		}
		b.fails = nil
		if b.power(true).rules.Sequence != 1 {
			t.Fatalf("cut at %d, half of it is started", i)
		}
		s = b.power(false)
		b.write("updates/"+inboxFile, b.update(2, b.key))
		if !s.installWaiting() || b.power(true).rules.Sequence != 2 {
			t.Fatalf("cut at %d, it is not taken later: %+v", i, s.state)
		}
	}
}

// TestCutWhileItIsKept: the new version is healthy, and the power fails after the first of
// two files is written.
func TestCutWhileItIsKept(t *testing.T) {
	b := newBoard(t)
	s := b.power(false)
	b.write("updates/"+inboxFile, b.update(2, b.key))
	s.installWaiting()
	before := b.read("updates/" + stateName)
	b.power(true).confirm()
	b.write("updates/"+stateName, before)
	if s = b.power(false); s.rules.Sequence != 2 || s.onTrial() || s.state.Floor != 2 {
		t.Errorf("%+v", s.state)
	}
}

// unsaved makes saving the state fail, as on a full disk, until mend.
func (b *board) unsaved() (mend func()) {
	b.t.Helper()
	writeState = func(string, string, any) error { return errors.New("the card is full") }
	mend = func() { writeState = update.WriteJSON }
	b.t.Cleanup(mend)
	return mend
}

// TestNotKept: if the state cannot be saved, a version that never ran does not become the
// default.
func TestNotKept(t *testing.T) {
	b := newBoard(t)
	s := b.power(false)
	b.write("updates/"+inboxFile, b.update(2, b.key))
	mend := b.unsaved()
	if s.installWaiting() || s.onTrial() {
		t.Error("it is tried, and nobody would know")
	}
	s.confirm() // of the running version
	if s.onTrial() {
		t.Error("what runs is on trial")
	}
	if s = b.power(false); s.rules.Sequence != 1 {
		t.Fatalf("it is started for good and was never tried: %+v", s.state)
	}
	mend()
	b.write("updates/"+inboxFile, b.update(2, b.key))
	if !s.installWaiting() || b.power(true).rules.Sequence != 2 {
		t.Error("it is not taken once there is room")
	}
}

// TestWellAndNotKept: a version is healthy, but the state cannot be saved.
func TestWellAndNotKept(t *testing.T) {
	b := newBoard(t)
	s := b.power(false)
	b.write("updates/"+inboxFile, b.update(2, b.key))
	s.installWaiting()
	s = b.power(true)
	mend := b.unsaved()
	s.confirm()
	for range 2 {
		if s.onTrial() {
			t.Error("it is on trial again")
		}
		if s = b.power(false); s.rules.Sequence != 2 {
			t.Fatalf("%+v", s.state)
		}
	}
	mend()
	if s = b.power(false); s.onTrial() || s.state.Floor != 2 || s.state.Failed != (trial{}) {
		t.Errorf("%+v", s.state)
	}
}

// TestCutBeforeItIsStarted: the power fails between saving the trial and the reboot, or
// during the trial.
func TestCutBeforeItIsStarted(t *testing.T) {
	for _, cut := range []string{"before", "while it is tried"} {
		b := newBoard(t)
		s := b.power(false)
		b.write("updates/"+inboxFile, b.update(2, b.key))
		s.installWaiting()
		if cut != "before" {
			b.power(true)
		}
		s = b.power(false)
		if s.onTrial() || s.state.Failed != (trial{}) {
			t.Fatalf("cut %s: %+v", cut, s.state)
		}
		if s.confirm(); b.power(false).rules.Sequence != 1 {
			t.Fatalf("cut %s, it is started for good", cut)
		}
		if !s.installWaiting() {
			t.Fatalf("cut %s, it is not tried again", cut)
		}
		s = b.power(true)
		s.confirm()
		if s = b.power(false); s.rules.Sequence != 2 || s.onTrial() {
			t.Errorf("cut %s: %+v", cut, s.state)
		}
	}
}

// TestTriedForEver: a version that always hangs is rejected, also if that cannot be saved.
func TestTriedForEver(t *testing.T) {
	b := newBoard(t)
	s := b.power(false)
	b.write("updates/"+inboxFile, b.update(2, b.key))
	tries := 0
	for s.installWaiting() {
		if tries++; tries > maxTries {
			t.Fatal("it is tried for ever")
		}
		b.power(true) // and hangs
		s = b.power(false)
	}
	if tries != maxTries || s.state.Failed.Sequence != 2 || s.state.Trial != (trial{}) {
		t.Errorf("after %d tries: %+v", tries, s.state)
	}
	b.write("updates/"+inboxFile, b.update(3, b.key))
	s.installWaiting()
	b.power(true)
	s = b.power(false)
	b.unsaved()
	if s.installWaiting() {
		t.Error("it is tried again, and nobody counts")
	}
}

// TestUnreadable: an unreadable state does not prevent updates.
func TestUnreadable(t *testing.T) {
	for _, text := range []string{"", "{", `{"form":2}`, `{"form":1,"more":1}`} {
		b := newBoard(t)
		b.write("updates/"+stateName, []byte(text))
		s := &slots{folder: b.path("updates")}
		if err := s.read(); err == nil || s.onTrial() {
			t.Errorf("%q: %v %+v", text, err, s.state)
		}
	}
}

// failing is a slot on a failing card.
type failing struct {
	*os.File
	left *int
}

func (f *failing) WriteAt(p []byte, at int64) (int, error) {
	if f.left == nil || len(p) < *f.left {
		if f.left != nil {
			*f.left -= len(p)
		}
		return f.File.WriteAt(p, at)
	}
	n, _ := f.File.WriteAt(p[:*f.left], at)
	*f.left = 0
	return n, io.ErrClosedPipe
}
