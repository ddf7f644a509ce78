package papers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Figure says where in the raw data a figure of ours is.
type Figure struct {
	Label string `json:"label"`
	File  string `json:"file"` // from results/
	As    Kind   `json:"as"`   // that of the row, if empty
	// Of a file of JSON objects: the value of a field in the object whose fields are as Where says, or the sum or mean over
	// all such objects, as Over says; a mean leaves out those where it is null: nothing was predicted. Null is a field that is absent, "*" one that is there. List is the key of a list of
	// objects in the one object of a file.
	Where map[string]any `json:"where"`
	Field string         `json:"field"`
	Over  string         `json:"over"`
	List  string         `json:"list"`
	// Base are the fields in which the object differs that the figure is a relation to.
	Base map[string]any `json:"base"`
	// Of another file: the number in the first match of the brackets in a regular expression.
	Match string `json:"match"`
	// MeanOf are rows: the mean of their figures with the same label.
	MeanOf []string `json:"mean_of"`
}

// data reads raw data.
type data struct {
	dir   string // results/
	rows  []Row
	files map[string][]map[string]any
}

func newData(dir string, rows []Row) *data {
	return &data{dir: dir, rows: rows, files: map[string][]map[string]any{}}
}

// value returns a figure of a row.
func (d *data) value(r *Row, f *Figure) (float64, error) {
	v, err := d.read(r, f)
	if err != nil {
		return 0, fmt.Errorf("%s, %q: %w", r.ID, f.Label, err)
	}
	return v, nil
}

func (d *data) read(r *Row, f *Figure) (float64, error) {
	switch {
	case len(f.MeanOf) > 0:
		return d.meanOf(f)
	case f.Match != "":
		return d.match(f)
	}
	v, err := d.find(f, f.Where)
	if err != nil || f.Base == nil {
		return v, err
	}
	where := maps.Clone(f.Where)
	maps.Copy(where, f.Base)
	base, err := d.find(f, where)
	if err != nil {
		return 0, err
	}
	switch kind := f.kind(r); kind {
	case Saved:
		return 1 - v/base, nil
	case Longer:
		return v/base - 1, nil
	case Slowdown:
		return v / base, nil
	case Times:
		return base / v, nil
	default:
		return 0, fmt.Errorf("kind %q is no relation to a base", kind)
	}
}

func (f *Figure) kind(r *Row) Kind {
	if f.As != "" {
		return f.As
	}
	return r.As
}

func (d *data) meanOf(f *Figure) (sum float64, err error) {
	for _, id := range f.MeanOf {
		v, found := 0.0, false
		for i := range d.rows {
			r := &d.rows[i]
			for k := range r.Ours {
				if g := &r.Ours[k]; r.ID == id && g.Label == f.Label {
					if v, err = d.value(r, g); err != nil {
						return 0, err
					}
					found = true
				}
			}
		}
		if !found {
			return 0, fmt.Errorf("row %s has no figure of that label", id)
		}
		sum += v
	}
	return sum / float64(len(f.MeanOf)), nil
}

func (d *data) match(f *Figure) (float64, error) {
	content, err := os.ReadFile(filepath.Join(d.dir, f.File))
	if err != nil {
		return 0, err
	}
	re, err := regexp.Compile(f.Match)
	if err != nil {
		return 0, err
	}
	m := re.FindSubmatch(content)
	if len(m) != 2 {
		return 0, fmt.Errorf("%s has nothing that matches %s", f.File, f.Match)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// find returns the value in the objects whose fields are as where says. Several are one if they agree.
func (d *data) find(f *Figure, where map[string]any) (float64, error) {
	objects, err := d.objects(f.File, f.List)
	if err != nil {
		return 0, err
	}
	var values []float64
	for _, o := range objects {
		if !fits(o, where) {
			continue
		}
		if v, there := o[f.Field]; f.Over == "mean" && there && v == nil {
			continue
		}
		v, ok := o[f.Field].(float64)
		if !ok {
			return 0, fmt.Errorf("%s: %v has no number %s", f.File, where, f.Field)
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return 0, fmt.Errorf("%s has nothing with %v", f.File, where)
	}
	sum := 0.0
	for _, v := range values {
		sum += v
		if f.Over == "" && v != values[0] {
			return 0, fmt.Errorf("%s: %d values of %s with %v", f.File, len(values), f.Field, where)
		}
	}
	switch f.Over {
	case "":
		return values[0], nil
	case "sum":
		return sum, nil
	case "mean":
		return sum / float64(len(values)), nil
	}
	return 0, fmt.Errorf("no %q of values", f.Over)
}

func fits(object, where map[string]any) bool {
	for k, want := range where {
		got, there := object[k]
		switch {
		case want == nil && there, want == "*" && !there:
			return false
		case want != nil && want != "*" && got != want:
			return false
		}
	}
	return true
}

// objects reads the JSON objects of a file once.
func (d *data) objects(file, list string) ([]map[string]any, error) {
	key := file + " " + list
	if all := d.files[key]; all != nil {
		return all, nil
	}
	if !strings.HasPrefix(filepath.Ext(file), ".json") {
		return nil, errors.New("no JSON file " + file)
	}
	content, err := os.ReadFile(filepath.Join(d.dir, file))
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	for dec := json.NewDecoder(bytes.NewReader(content)); ; {
		var o map[string]any
		if err := dec.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if list == "" {
			all = append(all, o)
			continue
		}
		items, _ := o[list].([]any)
		for _, i := range items {
			if o, ok := i.(map[string]any); ok {
				all = append(all, o)
			}
		}
	}
	d.files[key] = all
	return all, nil
}
