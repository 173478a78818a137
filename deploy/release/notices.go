package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// noticeFile matches the names of files with a licence or a notice.
var noticeFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(LICEN[CS]E|COPYING|NOTICE|PATENTS)([._-].*)?$`)
})

// notices writes the licences of Go and of all modules that programs link, and where their source is. It
// reads them from the module cache, or for a module that this repository replaces from its folder. A
// module without a licence is an error.
func notices(w io.Writer, programs []string) error {
	text, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	folders := strings.Fields(string(text))
	if len(folders) != 2 {
		return fmt.Errorf("go env says %q", text)
	}
	modules := make(map[string]string) // a heading, and a folder
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		modules["Go "+info.GoVersion+", source: https://go.dev/dl/"+info.GoVersion+".src.tar.gz"] = folders[0]
		for _, m := range info.Deps {
			if m.Path == "agentsite" { // the image's init links some of it
				continue
			}
			folder := filepath.Join(folders[1], escape(m.Path)+"@"+escape(m.Version))
			if m.Replace != nil && strings.HasPrefix(m.Replace.Path, ".") {
				folder = m.Replace.Path
			} else if m.Replace != nil {
				m = m.Replace
				folder = filepath.Join(folders[1], escape(m.Path)+"@"+escape(m.Version))
			}
			modules[m.Path+" "+m.Version+", source: https://proxy.golang.org/"+escape(m.Path)+"/@v/"+escape(m.Version)+".zip"] = folder
		}
	}
	texts := make(map[string][]string) // the headings by text
	for heading, folder := range modules {
		all, err := noticesOf(folder, !strings.HasPrefix(heading, "Go "))
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("no licence")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", heading, err)
		}
		for _, text := range all {
			texts[text] = append(texts[text], heading)
		}
	}
	var parts []string
	for text, headings := range texts {
		slices.Sort(headings)
		parts = append(parts, strings.Join(slices.Compact(headings), "\n")+"\n\n"+text)
	}
	slices.Sort(parts)
	_, err = fmt.Fprintf(w, "agentsite is licensed under the Apache License 2.0. It contains the following software.\n\n%s", strings.Join(parts, "\n"+strings.Repeat("-", 80)+"\n\n"))
	return err
}

// noticesOf returns the texts of the files with a licence or a notice in a folder, and with below in those
// below it.
func noticesOf(folder string, below bool) (all []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != folder && (!below || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || !noticeFile().MatchString(d.Name()) || filepath.Ext(path) == ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		all = append(all, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))+"\n")
		return err
	})
	return all, err
}

// escape is a path or a version as the module cache and the module proxy have it.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
