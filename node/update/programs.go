package update

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agentsite/node/identity"
)

// Programs is the folder, the superuser's alone, from which a board's service runs. The
// service starts the program that the link "agentsite" in it leads to: the one that the
// package brought, or a newer one in a folder named by its sequence. In the folder "inbox",
// which is the service's, updates wait, and a program says there that it is well.
//
// Whoever may fetch an update calls Stage. Whoever starts the service calls Settle and
// Install before, as the superuser. The program calls Prove once it is well. A program that
// has not done so when the service starts the next time has failed, and the one before it
// is started instead.
type Programs struct {
	Dir     string
	Package string // the path of the package's program
}

const (
	inboxName  = "inbox"
	waitName   = "next"
	provenName = "proven"
	linkName   = "agentsite"
	stateName  = "state.json"
)

// Rules say which updates are taken.
type Rules struct {
	Keys     []identity.ID
	Target   string // as of Target
	Sequence uint64 // of the program that asks; an update's is greater
}

// NewRules reads what a build was given: its number among releases, "" for none, and keys as
// did:key with commas between. With an error the rules are what could be read.
func NewRules(target, sequence, keys string) (Rules, error) {
	r := Rules{Target: target}
	var err error
	if sequence != "" {
		r.Sequence, err = strconv.ParseUint(sequence, 10, 64)
	}
	for _, text := range strings.FieldsFunc(keys, func(c rune) bool { return c == ',' }) {
		key, wrong := identity.Parse(text)
		r.Keys, err = append(r.Keys, key), errors.Join(err, wrong)
	}
	return r, err
}

// Check refuses a release that is not to be taken. floor is the greatest sequence that was
// ever well here.
func (r Rules) Check(new Release, floor uint64) error {
	switch least := max(r.Sequence, floor); {
	case new.Target != r.Target:
		return Refused{fmt.Errorf("%s is for %s, and this board runs %s: get the one for this board", new.Version, new.Target, r.Target)}
	case new.Sequence == least:
		return Refused{fmt.Errorf("%s is here already", new.Version)}
	case new.Sequence < least:
		return Refused{fmt.Errorf("%s is older than what is or was here, and may lack what was mended since: to go back all the same, install that version's package", new.Version)}
	}
	return nil
}

// Program is one of the versions that are kept. The zero one is the package's.
type Program struct {
	Version  string `json:"version,omitzero"`
	Sequence uint64 `json:"sequence,omitzero"`
	Size     int64  `json:"size,omitzero"`
	SHA256   string `json:"sha256,omitzero"`
}

// State is what decides which program runs.
type State struct {
	Form   int     `json:"form"`
	Floor  uint64  `json:"floor,omitzero"`  // the greatest sequence that was ever well; it never goes back
	InUse  Program `json:"in_use,omitzero"` // since the service was started the last time
	Before Program `json:"before,omitzero"`
	Trial  bool    `json:"trial,omitzero"`  // InUse was started for the first time
	Failed Program `json:"failed,omitzero"` // the last that was not well, and was taken away again
}

const stateForm = 1

func (p Programs) path(names ...string) string {
	return filepath.Join(append([]string{p.Dir}, names...)...)
}

// State reads the state. A folder that holds none yet has the zero one.
func (p Programs) State() (State, error) {
	s := State{Form: stateForm}
	err := Recall(p.Dir, stateName, &s)
	if err == nil && s.Form != stateForm {
		err = fmt.Errorf("it has the form %d, and this program knows %d", s.Form, stateForm)
	}
	if err != nil {
		return State{}, fmt.Errorf("%s cannot be used: %w; delete it, and the package's own program goes on", p.path(stateName), err)
	}
	return s, nil
}

// Proven reports whether the program in use has said that it is well.
func (p Programs) Proven(s State) bool {
	inbox, err := os.OpenRoot(p.path(inboxName))
	if err != nil {
		return false
	}
	defer inbox.Close()
	text, err := read(inbox, provenName)
	return err == nil && string(text) == proof(s.InUse.Sequence)
}

func proof(sequence uint64) string { return strconv.FormatUint(sequence, 10) + "\n" }

// read reads a short file out of a folder that is not trusted.
func read(root *os.Root, name string) ([]byte, error) {
	f, err := OpenFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 100))
}

// ProgramsOf is the folder that keeps the program at that path, and its sequence; 0 where
// none does.
func ProgramsOf(path string) (Programs, uint64) {
	folder := filepath.Dir(path)
	n, err := strconv.ParseUint(filepath.Base(folder), 10, 64)
	if err != nil || filepath.Base(path) != linkName {
		return Programs{}, 0
	}
	return Programs{Dir: filepath.Dir(folder)}, n
}

// Prove says that the program with that sequence is well. It writes once for each.
func (p Programs) Prove(sequence uint64) error {
	inbox, err := os.OpenRoot(p.path(inboxName))
	if err != nil {
		return err
	}
	defer inbox.Close()
	if text, err := read(inbox, provenName); err == nil && string(text) == proof(sequence) {
		return nil
	}
	return write(inbox, provenName, 0o644, func(w io.Writer) error { _, err := io.WriteString(w, proof(sequence)); return err })
}

// Stage keeps an update for the next start of the service, once all of it is verified.
// Another that waited is replaced.
func (p Programs) Stage(r io.Reader, rules Rules) (Release, error) {
	u, err := p.Check(r, rules)
	if err != nil {
		return Release{}, err
	}
	inbox, err := os.OpenRoot(p.path(inboxName))
	if err != nil {
		return Release{}, err
	}
	defer inbox.Close()
	// Two at once spoil each other's file. Install, which reads all of it again, refuses that.
	return u.Release, write(inbox, waitName, 0o644, u.copyWhole)
}

// Check reads an update up to its program, and refuses it where it is not to be taken.
func (p Programs) Check(r io.Reader, rules Rules) (*Update, error) {
	s, err := p.State()
	if err != nil {
		return nil, err
	}
	u, err := Read(r, rules.Keys)
	if err != nil {
		return nil, err
	}
	return u, rules.Check(u.Release, s.Floor)
}

// Settle decides which program runs, and returns what it did in sentences. packaged is the
// sequence of the package's program, which is to call this: the others may be what is wrong.
// Whatever it returns, the link leads to a program.
func (p Programs) Settle(packaged uint64) (did []string, err error) {
	s, err := p.State()
	if err != nil {
		return nil, errors.Join(err, p.link(Program{}))
	}
	was := s
	if s.Trial {
		if s.Trial = false; p.Proven(s) {
			s.Floor = max(s.Floor, s.InUse.Sequence)
			did = append(did, fmt.Sprintf("%s is well and stays", s.InUse.Version))
		} else {
			s.Failed, s.InUse, s.Before = s.InUse, s.Before, Program{}
			did = append(did, fmt.Sprintf("%s did not prove itself, and the program before it is back", s.Failed.Version))
		}
	}
	for s.InUse.Sequence > packaged && p.intact(s.InUse) != nil {
		did = append(did, fmt.Sprintf("%s is damaged, and the program before it is back: %v", s.InUse.Version, p.intact(s.InUse)))
		s.InUse, s.Before = s.Before, Program{}
	}
	if s.InUse.Sequence <= packaged { // the package is newer, or is all that is left
		s.InUse, s.Before = Program{}, Program{}
	}
	if s != was {
		err = p.save(s)
	}
	// Where it could not be saved, the next start decides the same again.
	err = errors.Join(err, p.link(s.InUse))
	if err == nil {
		p.sweep(s)
	}
	return did, err
}

// Install puts the update that waits in the place of the program in use, on trial, and
// returns it; nil for none. It verifies all of it again. What it refuses does not wait any
// more. Settle goes before.
func (p Programs) Install(rules Rules) (*Release, error) {
	inbox, err := os.OpenRoot(p.path(inboxName))
	if err != nil {
		return nil, err
	}
	defer inbox.Close()
	file, err := OpenFile(inbox, waitName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s, err := p.State()
	if err == nil && s.Trial {
		err = fmt.Errorf("%s is on trial", s.InUse.Version)
	}
	if err != nil {
		return nil, err
	}
	u, err := p.Check(file, rules)
	if err == nil {
		err = p.keep(u)
	}
	var refused Refused
	if errors.As(err, &refused) {
		return nil, errors.Join(err, inbox.Remove(waitName))
	}
	if err != nil {
		return nil, err
	}
	// It is tried once. So it is taken out of the inbox before it is put in use: a cut
	// between the two loses the update and nothing else.
	if err := errors.Join(remove(inbox, provenName), remove(inbox, waitName), flush(inbox)); err != nil {
		return nil, err
	}
	s.Before, s.InUse, s.Trial = s.InUse, Program{u.Version, u.Sequence, u.Size, hex.EncodeToString(u.SHA256[:])}, true
	if err := p.save(s); err != nil {
		return nil, err
	}
	return &u.Release, p.link(s.InUse)
}

// Waits reports whether an update waits to be installed.
func (p Programs) Waits() bool {
	info, err := os.Lstat(p.path(inboxName, waitName))
	return err == nil && info.Mode().IsRegular()
}

// keep writes an update's program to where it runs from.
func (p Programs) keep(u *Update) error {
	name := folderOf(u.Sequence)
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// A folder of that name is of one that was cut off, or failed: it is not in use, because
	// its sequence is greater than all that are.
	if err := errors.Join(root.RemoveAll(name), root.Mkdir(name, 0o755)); err != nil {
		return err
	}
	folder, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err = errors.Join(write(folder, linkName, 0o755, u.CopyTo), flush(root)); err != nil {
		root.RemoveAll(name)
	}
	return err
}

func folderOf(sequence uint64) string { return strconv.FormatUint(sequence, 10) }

// intact says what is wrong with a program that is kept.
func (p Programs) intact(program Program) error {
	f, err := os.Open(p.path(folderOf(program.Sequence), linkName))
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != program.SHA256 {
		return errors.New("it is not the program that was installed")
	}
	return nil
}

func (p Programs) save(s State) error { return Keep(p.Dir, stateName, s) }

// link has the link lead to the program.
func (p Programs) link(program Program) error {
	to := p.Package
	if program.Sequence > 0 {
		to = filepath.Join(folderOf(program.Sequence), linkName)
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if now, err := root.Readlink(linkName); err == nil && now == to {
		return nil
	}
	if err := remove(root, linkName+".new"); err != nil {
		return err
	}
	if err := root.Symlink(to, linkName+".new"); err != nil {
		return err
	}
	if err := root.Rename(linkName+".new", linkName); err != nil {
		return err
	}
	return flush(root)
}

// sweep removes the programs that nobody will start again.
func (p Programs) sweep(s State) {
	entries, _ := os.ReadDir(p.Dir)
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 64)
		if err == nil && n != s.InUse.Sequence && n != s.Before.Sequence {
			os.RemoveAll(p.path(e.Name()))
		}
	}
}
