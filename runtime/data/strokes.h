/* strokes.h: how the ten digits are written, for data/digits.c. */
#ifndef PN_STROKES_H
#define PN_STROKES_H

/* Paths as in SVG, absolute: M x y starts a stroke, L x y .. draws lines, Q cx cy x y .. quadratic and C ax ay bx by x
 * y .. cubic Bezier curves; a command holds for the points that follow. The letter box is 0 .. 100 in both directions,
 * y grows downwards. Each digit has PN_STYLES styles. */
enum { PN_STYLES = 4 };
extern const char *const pn_strokes[10][PN_STYLES];

#endif
