"""The words and the look of the page."""

from string import Template

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>imprint: $count_small recipes on handwritten digits</title>
<style>
:root { --ink: #1f2933; --pale: #64707d; --line: #e4e8ec; --blue: #0072b2; --back: #f6f7f9 }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 1040px; margin: 0 auto; padding: 2.5rem 1.25rem 3rem }
h1 { font-size: clamp(1.6rem, 4vw, 2.2rem); line-height: 1.2; margin: 0 0 .5rem }
h2 { font-size: 1.15rem; margin: 0 0 .35rem }
p { margin: 0 0 .75rem; max-width: 44rem }
.pale, small, figcaption { color: var(--pale) }
small { font-size: .8em; font-weight: normal }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px }
section { padding: 1.25rem 1.4rem; margin-top: 1.25rem }
.two section { margin: 0 }
.two { margin-top: 1.25rem }
.two { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)) }
.wide { overflow-x: auto }
.chart img { display: block; width: 100%; max-width: 620px; height: auto; margin: .5rem auto 0 }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .45rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
thead th { font-size: .85rem; font-weight: 600; color: var(--pale); vertical-align: bottom }
tbody th, thead th:first-child, tfoot th { text-align: left }
tbody th small { display: block }
tfoot th, tfoot td { color: var(--pale); font-weight: normal; border-bottom: 0 }
.best { font-weight: 700; color: var(--blue) }
.strip { display: flex; flex-wrap: wrap; gap: .75rem 1rem; margin-top: .75rem }
.strip figure { margin: 0; text-align: center }
.strip div { display: flex; gap: 2px }
.strip img { width: 38px; height: 38px; image-rendering: pixelated; border-radius: 3px }
.strip img + img { opacity: .55 }
.strip figcaption { font-size: .85rem }
.strip b { color: var(--ink) }
.wrong b { color: #b3261e }
pre { background: var(--back); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; margin: .5rem 0 0 }
pre { font-size: .9rem }
footer { margin-top: 1.5rem; font-size: .85rem }
@media (max-width: 640px) {
  section { padding: 1rem }
  td small, tbody th small { display: none }
  th, td { padding: .4rem .2rem; font-size: .82rem }
  thead th, tfoot th { white-space: normal; font-size: .7rem }
}
</style>
</head>
<body>
<main>
<h1>$count recipes on handwritten digits</h1>
<p>Weight imprinting makes a classifier for new classes from frozen embeddings, without training. Here TinyNet, which
was trained on photographs of quite other things, embeds the $train + $test digits that come with scikit-learn, and
$count_small recipes, five published ones and our own <i>kernel</i>, turn $shots pictures of each class into a
classifier: on four tasks, each with $seeds draws of the pictures.</p>

<section>
<h2>Accuracy in %, mean ± standard deviation over the draws</h2>
<div class="wide"><table>
<thead><tr><th>recipe</th><th>average<br>rank</th>$head</tr></thead>
<tbody>$rows</tbody>
<tfoot><tr><th>NC1 of the embeddings</th><td></td>$collapse</tr></tfoot>
</table></div>
</section>

<section class="chart">
<h2>Which differences are more than chance?</h2>
<p>$verdict</p>
$ranks
<p class="pale"><small>A bar joins recipes that cannot be told apart. The instances share test pictures and overlap in
training pictures, so these p-values are smaller than independent data would give.</small></p>
</section>

<div class="two">
<section class="chart">
<h2>More proxies per class help, most when they decide together</h2>
<p>One mean per class is not enough where a class has several modes: merge five digits into each of two classes, and
accuracy depends on k all the more. With <i>kernel</i> k is a budget of memory and time, not a thing to tune. Bands span
the seeds; all training pictures are used.</p>
$curve
</section>
<section class="chart">
<h2>Neural collapse says where</h2>
<p>Each point is a task of two classes with one to five digits each. The less the embeddings have collapsed (larger
NC1), the more twenty proxies gain over one: Spearman's ρ = $spearman ($p), $slope points for every tenfold NC1.</p>
$gains
</section>
</div>

<section>
<h2>A model that knows how good it is, and what it does not know</h2>
<p>Taught the digits 0 to 8, <i>kernel</i> expects of itself, from folds of its training pictures alone, an accuracy of
<b>$expected %</b> ($low to $high); on the test pictures it has <b>$came_true %</b>. Shown nines, which it has never
seen, it calls <b>$refused_unknown %</b> of them <i>none of these</i>, and $refused_known % of the digits it knows,
where 5 % were allowed.</p>
<p>Taught all ten and made to forget the nine, which takes $forgetting ms, it answers as the model that never saw one,
$exactly.</p>
</section>

<section>
<h2>What a model of all ten digits answers</h2>
<p>The first test picture of every digit with its label and probability, and beside it, faded, the training picture
nearest to the proxy that counted most. Probabilities are calibrated: of answers given with 90 %, about 90 % are
right.</p>
<div class="strip">$examples</div>
</section>

<section>
<h2>Your own pictures</h2>
<p>One sub-folder per class is all it takes.</p>
<pre>imprint fit photos/ -o model.imprint
imprint predict model.imprint new.jpg --why
imprint evaluate model.imprint test-photos/ --page report.html
imprint add model.imprint more-photos/
imprint serve</pre>
</section>
<footer class="pale">Made by imprint $version in $seconds s. Digits: E. Alpaydin and C. Kaynak, UCI machine learning
repository, CC BY 4.0. The page needs no network.</footer>
</main>
</body>
</html>
""")
