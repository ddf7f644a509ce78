// Package chart draws line charts, bar charts and grids of colors as plain SVG: a file, or a part of a page.
//
// The output is a function of the input alone: no dates, no random
// identifiers, no fonts that are measured, coordinates rounded to a tenth of
// a pixel. The same figures give the same bytes, so that they can be compared
// and committed. Nothing is loaded from elsewhere and no script is needed.
//
// # Caveats
//
// Text is placed by an estimate of its width; labels far longer than those of
// the reports may run out of the picture.
package chart
