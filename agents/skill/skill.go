package skill

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const (
	scheme   = "skill://"
	fileName = "SKILL.md"

	// MIME is the media type of a skill's file.
	MIME = "text/markdown"

	maxFile   = 64 << 10
	maxSkills = 32 // in one folder
)

// Skill is one skill.
type Skill struct {
	Name, Description string
	Text              string // the whole file
	Entry             Entry
}

// Entry describes a skill, as MCP's skills/list does.
type Entry struct {
	URI         string         `json:"uri"`
	Frontmatter map[string]any `json:"frontmatter"`
	Resources   []File         `json:"resources"`
}

// File is one file of a skill, with the digest of its bytes.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

// IsURI reports whether a URI has the form of a file of a skill.
func IsURI(uri string) bool { return strings.HasPrefix(uri, scheme) }

//go:embed builtin
var files embed.FS

// BuiltIn returns the skills that come with the program. The slice is not changed.
var BuiltIn = sync.OnceValue(func() []Skill {
	sub, err := fs.Sub(files, "builtin")
	if err != nil {
		panic(err)
	}
	all, errs := read(sub, "")
	if errs != nil {
		panic(errors.Join(errs...)) // a test has read them
	}
	return all
})

// Open returns the skills that come with the program and those in a folder, which replace them by name; there may be no
// such folder. Skills with a mistake are left out: each error names the file, and the line where there is one.
func Open(folder string) (all []Skill, errs []error) {
	own, errs := readFolder(folder)
	for _, s := range BuiltIn() {
		if !contains(own, s.Name) {
			all = append(all, s)
		}
	}
	return append(all, own...), errs
}

// Equal reports whether two lists have the same skills with the same bytes.
func Equal(a, b []Skill) bool {
	return slices.EqualFunc(a, b, func(a, b Skill) bool { return a.Name == b.Name && a.Text == b.Text })
}

func contains(all []Skill, name string) bool {
	return slices.ContainsFunc(all, func(s Skill) bool { return s.Name == name })
}

// readFolder reads a folder of the disk. What a link leads to is not read.
func readFolder(folder string) ([]Skill, []error) {
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, []error{fmt.Errorf("the skills cannot be read: %w", err)}
	}
	defer root.Close()
	return read(root.FS(), folder)
}

// read reads the folders of fsys, which is called folder in errors.
func read(fsys fs.FS, folder string) (all []Skill, errs []error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, []error{fmt.Errorf("the skills cannot be read: %w", err)}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		file := filepath.Join(folder, e.Name(), fileName)
		if !e.IsDir() {
			errs = append(errs, fmt.Errorf("%s is no folder: put the skill into %s",
				filepath.Join(folder, e.Name()), filepath.Join(folder, "NAME", fileName)))
			continue
		}
		if len(all) == maxSkills {
			return all, append(errs, fmt.Errorf("%s and what follows is not offered: %d skills are the most", file, maxSkills))
		}
		s, err := readFile(fsys, e.Name())
		if line := (*lineError)(nil); errors.As(err, &line) {
			err = fmt.Errorf("%s:%d: %s", file, line.line, line.says)
		} else if err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, s)
	}
	return all, errs
}

func readFile(fsys fs.FS, name string) (s Skill, err error) {
	at := path.Join(name, fileName)
	info, err := fs.Lstat(fsys, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, errors.New("there is no such file; a skill is a folder with one")
	case err != nil:
		return s, errors.Unwrap(err)
	case !info.Mode().IsRegular():
		return s, errors.New("it is no plain file; links are not followed")
	}
	f, err := fsys.Open(at)
	if err != nil {
		return s, errors.Unwrap(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return s, err
	}
	return Parse(name, text)
}

// Parse reads the text of a skill in a folder of that name.
func Parse(folder string, text []byte) (s Skill, err error) {
	if len(text) > maxFile {
		return s, fmt.Errorf("it is longer than %d KiB; a model reads it whole, so shorten it", maxFile>>10)
	}
	front, err := frontmatter(text)
	if err != nil {
		return s, err
	}
	s = Skill{Name: front.name, Description: front.description, Text: string(text)}
	if s.Name != folder {
		return Skill{}, at(front.nameLine, "name is %q, and the folder is called %q; they have to be equal", s.Name, folder)
	}
	sum := sha256.Sum256(text)
	uri := scheme + s.Name + "/" + fileName
	s.Entry = Entry{URI: uri, Frontmatter: front.all, Resources: []File{
		{URI: uri, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: len(text)},
	}}
	return s, nil
}
