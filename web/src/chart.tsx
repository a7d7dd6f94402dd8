// ECharts, by the parts that are used, in the page's colours.
import {BarChart, LineChart, ParallelChart, ScatterChart} from 'echarts/charts';
import {GridComponent, MarkLineComponent, ParallelComponent, TooltipComponent} from 'echarts/components';
import {init, use, type ECharts, type EChartsCoreOption} from 'echarts/core';
import {CanvasRenderer} from 'echarts/renderers';
import {useEffect, useRef} from 'preact/hooks';
import {drawable} from './range';
import {useTheme} from './theme';

use([BarChart, LineChart, ParallelChart, ScatterChart, GridComponent, MarkLineComponent, ParallelComponent, TooltipComponent, CanvasRenderer]);

export interface Palette {
  ink: string;
  muted: string;
  line: string;
  surface: string;
  main: string;
  warm: string;
  faint: string;
  font: string;
}

/** The colours as the browser has worked them out for light or dark. */
function palette(): Palette {
  const probe = document.createElement('span');
  document.body.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    ink: colour('ink'),
    muted: colour('muted'),
    line: colour('line'),
    surface: colour('surface'),
    main: colour('series'),
    warm: colour('series-warm'),
    faint: colour('series-faint'),
    font: getComputedStyle(document.body).fontFamily,
  };
  probe.remove();
  return found;
}

/** Lines of a tooltip as elements: what comes from the server is text, never markup. */
export function tip(title: string, lines: [string, string][] = []): HTMLElement {
  const box = document.createElement('div');
  const head = document.createElement('strong');
  head.textContent = title;
  box.append(head);
  for (const [name, value] of lines) {
    const row = document.createElement('div');
    const label = document.createElement('span');
    label.textContent = name;
    row.append(label, ' ' + value);
    box.append(row);
  }
  return box;
}

/** What is told of the point under the pointer; `tip` in style.css says how it looks. */
export function tooltip<Item>(formatter: (item: Item) => HTMLElement | string): Record<string, unknown> {
  return {className: 'tip', confine: true, borderWidth: 0, backgroundColor: '', trigger: 'item', transitionDuration: 0, formatter};
}

/** An axis with its name in the middle beside it. */
export function axis(p: Palette, name: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const {axisLabel, ...rest} = more as {axisLabel?: Record<string, unknown>};
  return {
    type: 'value',
    name,
    nameLocation: 'middle',
    nameTextStyle: {color: p.muted, fontSize: 12},
    axisLine: {lineStyle: {color: p.line}},
    axisTick: {show: false},
    axisLabel: {color: p.muted, fontSize: 11, hideOverlap: true, ...axisLabel},
    splitLine: {lineStyle: {color: p.line, opacity: 0.6}},
    ...rest,
  };
}

/** The option with data that can be drawn. */
function withDrawableData(option: EChartsCoreOption): EChartsCoreOption {
  const series = [option.series ?? []].flat() as {data?: unknown}[];
  return {...option, series: series.map((one) => ({...one, data: drawable(one.data)}))};
}

export function Chart(props: {label: string; option: (p: Palette) => EChartsCoreOption; keys: unknown[]; height?: number; onPick?: (data: unknown) => void}) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const theme = useTheme();
  const pick = useRef(props.onPick);
  pick.current = props.onPick;

  useEffect(() => {
    const made = init(box.current, undefined, {renderer: 'canvas'});
    chart.current = made;
    made.on('click', (event) => pick.current?.((event as {data: unknown}).data));
    const watch = new ResizeObserver(() => made.resize());
    if (box.current) watch.observe(box.current);
    return () => {
      watch.disconnect();
      made.dispose();
    };
  }, []);

  useEffect(() => {
    const p = palette();
    chart.current?.setOption(
      {
        animation: false,
        textStyle: {fontFamily: p.font},
        ...withDrawableData(props.option(p)),
      },
      {notMerge: true},
    );
  }, [theme, ...props.keys]);

  return <div class="chart" role="img" aria-label={props.label} ref={box} style={{height: `${props.height ?? 280}px`}} />;
}
