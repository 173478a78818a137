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

// Programs is the folder with the programs of a board's service; only the superuser can write it.
// The service starts the target of the link "agentsite" in it: the package's program, or a newer
// one in a folder named by its sequence. What the service stages, and the proof that a program works,
// are in the folder "inbox", which the service can write. What the superuser stages is not: a service
// that somebody took over cannot replace it.
//
// A process that may fetch an update calls Stage. Before the service starts, the superuser
// calls Settle and Install. The program calls Prove once it works. If it has not done so by
// the next start of the service, it has failed, and the program before it is started.
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

// Rules decide which updates are accepted.
type Rules struct {
	Keys     []identity.ID
	Target   string // as of Target
	Sequence uint64 // of the running program; an update's is greater
}

// NewRules parses the parameters of a build: its sequence, "" for none, and keys as did:key,
// separated by commas. With an error it returns the parsed part.
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

// Check refuses a release that must not be installed. floor is the greatest sequence that ever
// proved itself here; after a return to an older one, the board accepts that release again.
func (r Rules) Check(new Release, floor uint64) error {
	switch {
	case new.Target != r.Target:
		return Refused{fmt.Errorf("%s is for %s, and this board runs %s: get the one for this board", new.Version, new.Target, r.Target)}
	case new.Sequence == r.Sequence:
		return Refused{fmt.Errorf("%s is here already", new.Version)}
	case new.Sequence < max(r.Sequence, floor):
		return Refused{fmt.Errorf("%s is older than the installed version or one before, and may lack fixes: "+
			"to go back nevertheless, use sudo agentsite update --back, or install that version's package", new.Version)}
	}
	return nil
}

// Program is an installed version. The zero one is the package's.
type Program struct {
	Version  string `json:"version,omitzero"`
	Sequence uint64 `json:"sequence,omitzero"`
	Size     int64  `json:"size,omitzero"`
	SHA256   string `json:"sha256,omitzero"`
}

// State decides which program runs.
type State struct {
	Form   int     `json:"form"`
	Floor  uint64  `json:"floor,omitzero"`  // the greatest sequence that ever proved itself; it never decreases
	InUse  Program `json:"in_use,omitzero"` // since the last start of the service
	Before Program `json:"before,omitzero"`
	Trial  bool    `json:"trial,omitzero"`  // InUse has not proved itself yet
	Failed Program `json:"failed,omitzero"` // the last that was rolled back
}

const stateForm = 1

func (p Programs) path(names ...string) string {
	return filepath.Join(append([]string{p.Dir}, names...)...)
}

// State reads the state. A folder without one has the zero State.
func (p Programs) State() (State, error) {
	s := State{Form: stateForm}
	err := ReadJSON(p.Dir, stateName, &s)
	if err == nil && s.Form != stateForm {
		err = fmt.Errorf("it has version %d, and this program reads %d", s.Form, stateForm)
	}
	if err != nil {
		return State{}, fmt.Errorf("%s cannot be used: %w; delete it, and the package's own program is used", p.path(stateName), err)
	}
	return s, nil
}

// Proven reports whether the program in use has proved itself.
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

// read reads a short file of an untrusted folder.
func read(root *os.Root, name string) ([]byte, error) {
	f, err := OpenFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 100))
}

// ProgramsOf returns the folder of the program at that path, and its sequence; 0 for a program
// that is no update.
func ProgramsOf(path string) (Programs, uint64) {
	folder := filepath.Dir(path)
	n, err := strconv.ParseUint(filepath.Base(folder), 10, 64)
	if err != nil || filepath.Base(path) != linkName {
		return Programs{}, 0
	}
	return Programs{Dir: filepath.Dir(folder)}, n
}

// Prove records that the program with that sequence works. It writes once for each.
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

// Stage verifies an update and stores it for the next start of the service. It replaces another
// one of this user.
func (p Programs) Stage(r io.Reader, rules Rules) (Release, error) {
	u, err := p.Check(r, rules)
	if err != nil {
		return Release{}, err
	}
	return p.stage(u)
}

func (p Programs) stage(u *Update) (Release, error) {
	// Two at once damage each other's file. Install, which verifies all of it again, refuses that.
	err := p.stageIn(p.Dir, u)
	if err == nil {
		err = forgetIn(p.Dir, backName) // the superuser's last word counts
	}
	if readOnly(err) { // to the service, before a byte is read
		err = p.stageIn(p.path(inboxName), u)
	}
	return u.Release, err
}

func (p Programs) stageIn(folder string, u *Update) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return write(root, waitName, 0o644, u.copyWhole)
}

// Check reads an update up to its program, and refuses it if it must not be installed.
func (p Programs) Check(r io.Reader, rules Rules) (*Update, error) {
	s, err := p.State()
	if err != nil {
		return nil, err
	}
	u, err := Read(r, rules.Keys)
	if err != nil {
		return nil, err
	}
	return u, rules.after(s).Check(u.Release, s.Floor)
}

// Allow refuses a release that must not be installed, as Check does for an update.
func (p Programs) Allow(r Release, rules Rules) error {
	s, err := p.State()
	if err != nil {
		return err
	}
	return rules.after(s).Check(r, s.Floor)
}

// after returns the rules for a board with that state, whose program in use may be newer than the
// running one.
func (r Rules) after(s State) Rules {
	r.Sequence = max(r.Sequence, s.InUse.Sequence)
	return r
}

// Settle decides which program runs, and returns its actions in sentences. packaged is the sequence
// of the package's program, which makes this call because the others may have failed. Even with an
// error, the link points to a program.
func (p Programs) Settle(packaged uint64) (did []string, err error) {
	s, err := p.State()
	if err != nil {
		return nil, errors.Join(err, p.link(Program{}))
	}
	was := s
	if s.Trial {
		if s.Trial = false; p.Proven(s) {
			s.Floor = max(s.Floor, s.InUse.Sequence)
			did = append(did, fmt.Sprintf("%s works and stays installed", s.InUse.Version))
		} else {
			s.Failed, s.InUse, s.Before = s.InUse, s.Before, Program{}
			did = append(did, fmt.Sprintf("%s did not prove itself and was rolled back", s.Failed.Version))
		}
	}
	for s.InUse.Sequence > packaged && p.verify(s.InUse) != nil {
		did = append(did, fmt.Sprintf("%s is damaged and was rolled back: %v", s.InUse.Version, p.verify(s.InUse)))
		s.InUse, s.Before = s.Before, Program{}
	}
	if s.InUse.Sequence <= packaged { // the package is newer, or the only one left
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

// Install installs a staged update on trial and returns it; nil for none. The superuser's comes
// first. Install verifies all of it again, and removes an update that it refuses. The caller calls
// Settle before.
func (p Programs) Install(rules Rules) (*Release, error) {
	r, err := p.installFrom(p.Dir, rules)
	if r == nil && err == nil {
		r, err = p.installFrom(p.path(inboxName), rules)
	}
	return r, err
}

func (p Programs) installFrom(folder string, rules Rules) (*Release, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := OpenFile(root, waitName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Join(err, remove(root, waitName))
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
		return nil, errors.Join(err, remove(root, waitName))
	}
	if err != nil {
		return nil, err
	}
	// It is tried once. So it is removed before it is used: a loss of power between the two loses
	// the update and nothing else.
	if err := errors.Join(p.forgetProof(), remove(root, waitName), syncFolder(root)); err != nil {
		return nil, err
	}
	s.Before, s.InUse, s.Trial = s.InUse, Program{u.Version, u.Sequence, u.Size, hex.EncodeToString(u.SHA256[:])}, true
	if err := p.save(s); err != nil {
		return nil, err
	}
	return &u.Release, p.link(s.InUse)
}

// forgetProof removes the proof of an earlier program.
func (p Programs) forgetProof() error { return forgetIn(p.path(inboxName), provenName) }

// Waits reports whether an update is staged.
func (p Programs) Waits() bool {
	for _, path := range []string{p.path(waitName), p.path(inboxName, waitName)} {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// keep writes an update's program to its folder.
func (p Programs) keep(u *Update) error {
	name := folderOf(u.Sequence)
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// A folder of that name is left from an interrupted or failed update, or from a version that the
	// board went back from. It is not in use, because its sequence is greater than that in use.
	if err := errors.Join(root.RemoveAll(name), root.Mkdir(name, 0o755)); err != nil {
		return err
	}
	folder, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err = errors.Join(write(folder, linkName, 0o755, u.CopyTo), syncFolder(root)); err != nil {
		root.RemoveAll(name)
	}
	return err
}

func folderOf(sequence uint64) string { return strconv.FormatUint(sequence, 10) }

// verify checks an installed program against its hash.
func (p Programs) verify(program Program) error {
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
		return errors.New("not the program that was installed")
	}
	return nil
}

func (p Programs) save(s State) error { return WriteJSON(p.Dir, stateName, s) }

// link makes the link point to the program.
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
	return syncFolder(root)
}

// sweep removes the programs that will not be started again.
func (p Programs) sweep(s State) {
	entries, _ := os.ReadDir(p.Dir)
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 64)
		if err == nil && n != s.InUse.Sequence && n != s.Before.Sequence {
			os.RemoveAll(p.path(e.Name()))
		}
	}
}
