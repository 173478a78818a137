package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
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
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// A container image as of the image specification 1.1 of the Open Container Initiative: for each platform one
// layer, its configuration and its manifest; an index of them.
const (
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeIndex    = "application/vnd.oci.image.index.v1+json"

	// The user and the group of the site in the container.
	containerUser = 65532
	containerData = "/var/lib/agentsite"
	// Where run looks for agentsite.yaml.
	containerConfig = "/etc/agentsite"
)

type (
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
		Variant      string `json:"variant,omitempty"`
	}
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        *descriptor       `json:"config,omitempty"`
		Layers        []descriptor      `json:"layers,omitempty"`
		Manifests     []descriptor      `json:"manifests,omitempty"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	imageConfig struct {
		Created string `json:"created"`
		platform
		Config  settings  `json:"config"`
		RootFS  rootFS    `json:"rootfs"`
		History []history `json:"history"`
	}
	settings struct {
		User         string
		ExposedPorts map[string]struct{}
		Env          []string
		Entrypoint   []string
		Cmd          []string
		Volumes      map[string]struct{}
		WorkingDir   string
		Labels       map[string]string
		StopSignal   string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	history struct {
		Created   string `json:"created"`
		CreatedBy string `json:"created_by"`
	}
)

// file is a file of a tar archive; a folder where the name ends with a slash.
type file struct {
	name  string
	mode  int64
	owner int
	text  []byte
}

var platforms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^linux/([a-z0-9]+)(?:/([0-9]))?=(.+)$`)
})

// writeImage writes the image of the programs, PLATFORM=PATH, as an archive of an OCI image layout.
func writeImage(to, version, name string, programs []string, date time.Time) error {
	blobs := make(map[string][]byte)
	add := func(mediaType string, blob []byte) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256(blob))
		blobs[sum] = blob
		return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(blob)}
	}
	addJSON := func(mediaType string, v any) (descriptor, error) {
		text, err := json.Marshal(v)
		return add(mediaType, text), err
	}
	labels := map[string]string{
		"org.opencontainers.image.title": "agentsite", "org.opencontainers.image.version": version,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.created":  date.Format(time.RFC3339),
	}
	if name != "" {
		labels["io.modelcontextprotocol.server.name"] = name
	}
	zones, err := readZones()
	if err != nil {
		return err
	}
	index := manifest{SchemaVersion: 2, MediaType: typeIndex, Annotations: labels}
	for _, arg := range programs {
		m := platforms().FindStringSubmatch(arg)
		if m == nil {
			return fmt.Errorf("write linux/arm/6=PROGRAM, not %q", arg)
		}
		p := platform{Architecture: m[1], OS: "linux"}
		if m[2] != "" {
			p.Variant = "v" + m[2]
		}
		program, err := os.ReadFile(m[3])
		if err != nil {
			return err
		}
		plain, err := writeTar(append(layer(program), zones...), date)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(plain); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		config, err := addJSON(typeConfig, imageConfig{
			Created: date.Format(time.RFC3339), platform: p,
			Config: settings{
				User:         fmt.Sprintf("%d:%d", containerUser, containerUser),
				ExposedPorts: map[string]struct{}{"8474/tcp": {}},
				Env:          []string{"HOME=" + containerData, "PATH=/usr/bin"},
				Entrypoint:   []string{"/usr/bin/agentsite"},
				Cmd:          []string{"run", "--data", containerData},
				Volumes:      map[string]struct{}{containerData: {}}, WorkingDir: containerConfig, Labels: labels,
				StopSignal: "SIGTERM",
			},
			RootFS:  rootFS{"layers", []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}},
			History: []history{{date.Format(time.RFC3339), "agentsite " + version}},
		})
		if err != nil {
			return err
		}
		one, err := addJSON(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: &config,
			Layers: []descriptor{add(typeLayer, packed.Bytes())}, Annotations: labels})
		if err != nil {
			return err
		}
		one.Platform = &p
		index.Manifests = append(index.Manifests, one)
	}
	all, err := addJSON(typeIndex, index)
	if err != nil {
		return err
	}
	// By the first podman names it, by the second Docker.
	all.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": "agentsite:" + version,
		"io.containerd.image.name":          "docker.io/library/agentsite:" + version,
	}
	top, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{all}})
	if err != nil {
		return err
	}
	files := []file{{"oci-layout", 0o644, 0, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", 0o644, 0, top},
		{"blobs/", 0o755, 0, nil}, {"blobs/sha256/", 0o755, 0, nil}}
	for sum, blob := range blobs {
		files = append(files, file{"blobs/sha256/" + sum, 0o644, 0, blob})
	}
	slices.SortStableFunc(files[4:], func(a, b file) int { return cmp.Compare(a.name, b.name) })
	text, err := writeTar(files, date)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// layer returns all files of the container: the program, its data folder, the authorities whose certificates
// it accepts, and a name for its user.
func layer(program []byte) []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		// What is constrained would be trusted wholly: a PEM file says nothing of that.
		if root.Constraint == nil {
			pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	user := fmt.Sprintf("agentsite:x:%d:%d::%s:/\n", containerUser, containerUser, containerData)
	return []file{
		{"etc/", 0o755, 0, nil},
		{containerConfig[1:] + "/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\nagentsite:x:%d:\n", containerUser)},
		{"etc/passwd", 0o644, 0, []byte("root:x:0:0::/:/\n" + user)},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots.Bytes()},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
		{"usr/bin/agentsite", 0o755, 0, program},
		{"var/", 0o755, 0, nil},
		{"var/lib/", 0o755, 0, nil},
		{containerData[1:] + "/", 0o700, containerUser, nil},
	}
}

// readZones returns the time zones that Go comes with, where programs look for them.
func readZones() ([]file, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	all := []file{{"usr/share/", 0o755, 0, nil}, {"usr/share/zoneinfo/", 0o755, 0, nil}}
	for _, f := range z.File {
		one := file{"usr/share/zoneinfo/" + f.Name, 0o755, 0, nil}
		if !strings.HasSuffix(f.Name, "/") {
			one.mode = 0o644
			if one.text, err = fs.ReadFile(z, f.Name); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// writeTar returns an archive of the files.
func writeTar(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.text)),
			ModTime: date, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, bytes.NewReader(f.text)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
