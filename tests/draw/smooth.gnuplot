$loss0 << END
1.5 2.25
2.5 2
4 1.5
END
$accuracy0 << END
3 50
4.5 75
END
set terminal svg noenhanced size 1000,782 font 'Helvetica,14' background '#ffffff'
set style line 1 linecolor rgb '#0072b2' linewidth 2 dashtype 1 pointtype 4 pointsize 0.6 pointinterval 1
set style line 2 linecolor rgb '#d55e00' linewidth 2 dashtype 2 pointtype 5 pointsize 0.6 pointinterval 1
set style line 3 linecolor rgb '#009e73' linewidth 2 dashtype 3 pointtype 6 pointsize 0.6 pointinterval 1
set style line 4 linecolor rgb '#cc79a7' linewidth 2 dashtype 4 pointtype 7 pointsize 0.6 pointinterval 1
set style line 5 linecolor rgb '#000000' linewidth 2 dashtype 5 pointtype 8 pointsize 0.6 pointinterval 1
set style line 6 linecolor rgb '#b8860b' linewidth 2 dashtype 1 pointtype 9 pointsize 0.6 pointinterval 1
set style line 7 linecolor rgb '#56b4e9' linewidth 2 dashtype 2 pointtype 10 pointsize 0.6 pointinterval 1
set style line 8 linecolor rgb '#7f7f7f' linewidth 2 dashtype 3 pointtype 11 pointsize 0.6 pointinterval 1
set grid linecolor rgb '#cccccc'
set border 3
set tics nomirror
set lmargin 11
set rmargin 3
set key outside top center horizontal reverse Left noenhanced maxcols 2 samplen 5
set xrange [0:4.5]
set multiplot layout 2,1
set ylabel 'training loss, mean of 2 intervals'
plot $loss0 using 1:2 with linespoints linestyle 1 title 'run.jsonl'
unset key
set ylabel 'test accuracy, %'
set xlabel 'seconds'
plot $accuracy0 using 1:2 with linespoints linestyle 1 notitle
unset multiplot
