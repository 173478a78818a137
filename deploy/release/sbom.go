package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// bom is the part of CycloneDX 1.5 that describes a Go program. It has no time and no serial
// number, so that equal programs have equal ones.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	PURL    string `json:"purl,omitzero"`
	Hashes  []hash `json:"hashes,omitzero"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitzero"`
}

// sbom writes the standard library and the modules of a program, from its build information.
func sbom(w io.Writer, program string) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	self := component{Type: "application", Ref: info.Main.Path, Name: info.Main.Path,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(text))}}}
	parts := []component{module("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		sum := m.Sum
		switch r := m.Replace; {
		case r != nil && strings.HasPrefix(r.Path, "."): // a folder here has no name elsewhere, nor the original's hash
			sum = ""
		case r != nil:
			m, sum = r, r.Sum
		}
		parts = append(parts, module(m.Path, m.Version, sum))
	}
	uses := dependency{Ref: self.Ref}
	for _, c := range parts {
		uses.On = append(uses.On, c.Ref)
	}
	return json.MarshalWrite(w, bom{"CycloneDX", "1.5", 1, metadata{self}, parts, []dependency{uses}}, jsontext.WithIndent("  "))
}

func module(path, version, sum string) component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
	if b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(b) == sha256.Size {
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(b)}} // of the module's files, as in go.sum
	}
	return c
}
